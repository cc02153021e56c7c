# cmake --install: the program, the libraries, and headers under include/turnout. Our headers include each other from
# the repository's root ("core/graph.hpp"); installed ones say "turnout/core/graph.hpp", so that a user's include path
# never gains a folder as general as core/.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Turnout)

install(CODE "set(source \"${CMAKE_SOURCE_DIR}\")
set(generated \"${CMAKE_BINARY_DIR}/generated\")
set(destination \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_INCLUDEDIR}/turnout\")
include(\"${CMAKE_SOURCE_DIR}/cmake/install_headers.cmake\")")

get_property(libraries GLOBAL PROPERTY TURNOUT_LIBRARIES)
list(REMOVE_ITEM libraries turnout_test_support)
set_target_properties(turnout_runtime PROPERTIES EXPORT_NAME turnout)
set(exported turnout_config turnout_onnx_proto ${libraries})
if(TARGET turnout_openblas)
  list(APPEND exported turnout_openblas)
endif()
install(TARGETS ${exported} EXPORT TurnoutTargets INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
foreach(target IN ITEMS turnout turnout_c)
  if(TARGET ${target})
    # CMake leaves folders inside the project out of INSTALL_RPATH_USE_LINK_PATH, and build/deps is one.
    set_target_properties(${target} PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON
      INSTALL_RPATH "${TURNOUT_DEPS}/onednn/lib;${TURNOUT_DEPS}/openblas/lib")
    install(TARGETS ${target})
  endif()
endforeach()

install(EXPORT TurnoutTargets NAMESPACE Turnout:: DESTINATION ${package_dir})
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/templates/TurnoutConfig.cmake.in
  ${CMAKE_BINARY_DIR}/TurnoutConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/TurnoutConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/TurnoutConfig.cmake ${CMAKE_BINARY_DIR}/TurnoutConfigVersion.cmake
  DESTINATION ${package_dir})

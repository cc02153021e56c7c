# The Kokkos kernels in device mode (backends/kokkos/mode.hpp): loops run in the default execution space of the Kokkos
# that was found.

# turnout_kokkos_device_library(NAME): a static library of them, for whatever space that is. Its names are those of the
# library turnout_kokkos: both can't be in one program.
function(turnout_kokkos_device_library name)
  set(folder ${CMAKE_SOURCE_DIR}/backends/kokkos)
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cpp ${folder}/device/*.cpp)
  add_library(${name} STATIC EXCLUDE_FROM_ALL ${sources})
  target_compile_definitions(${name} PUBLIC TURNOUT_KOKKOS_DEVICE=1)
  target_link_libraries(${name} PUBLIC turnout_ops Kokkos::kokkos PRIVATE turnout_warnings)
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_EXTENSIONS OFF
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
endfunction()

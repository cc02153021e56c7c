# Writes what the code has to know of the options: generated/turnout_config.hpp, and the explicit lists of
# backends and providers (no static-initialiser registration: linkers drop it from static libraries).

foreach(part IN ITEMS ONEDNN OPENBLAS KOKKOS VIRTUAL)
  string(REPLACE "\"" "'" TURNOUT_WHY_${part} "${TURNOUT_WHY_${part}}")
endforeach()
set(turnout_blas_name name)
if(TURNOUT_BLAS_PREFIX)
  set(turnout_blas_name "${TURNOUT_BLAS_PREFIX}##name")
endif()
configure_file(${CMAKE_SOURCE_DIR}/cmake/templates/turnout_config.hpp.in ${CMAKE_BINARY_DIR}/generated/turnout_config.hpp)

# turnout_write_list(TEMPLATE CALL NAME...): fills @calls@ of a template, one line a name.
function(turnout_write_list template call)
  set(calls "")
  foreach(name IN LISTS ARGN)
    string(REPLACE NAME ${name} line "${call}")
    string(APPEND calls "  ${line}\n")
  endforeach()
  configure_file(${CMAKE_SOURCE_DIR}/cmake/templates/${template}.in ${CMAKE_BINARY_DIR}/generated/${template} @ONLY)
endfunction()

set(turnout_backends cpu)
if(TURNOUT_BUILD_VIRTUAL)
  list(APPEND turnout_backends virtual)
endif()
set(turnout_backend_calls ${turnout_backends})
list(TRANSFORM turnout_backend_calls REPLACE "(.+)" "make_\\1_backend()")
# Devices behind plugins: whether there are any is found out at run time.
list(APPEND turnout_backend_calls "make_plugin_backend(\"cuda\")" "make_plugin_backend(\"hip\")")
turnout_write_list(backend_list.cpp "backends.push_back(NAME);" ${turnout_backend_calls})

include(BuildId)

set(turnout_providers "")
foreach(part IN ITEMS ONEDNN OPENBLAS KOKKOS)
  if(TURNOUT_BUILD_${part})
    string(TOLOWER ${part} name)
    list(APPEND turnout_providers ${name})
  endif()
endforeach()
turnout_write_list(cpu_providers.cpp "register_NAME_kernels(registry);" ${turnout_providers} reference)

function(turnout_print_summary)
  message(STATUS "Turnout ${PROJECT_VERSION}, ${CMAKE_BUILD_TYPE}, for processor ${TURNOUT_CPU_ARCH}")
  foreach(part IN ITEMS ONEDNN OPENBLAS KOKKOS VIRTUAL CUDA HIP TESTS)
    if(TURNOUT_BUILD_${part})
      message(STATUS "  ${part}: on")
    else()
      message(STATUS "  ${part}: off, ${TURNOUT_WHY_${part}}")
    endif()
  endforeach()
endfunction()

# The Kokkos kernels in device mode (backends/kokkos/mode.hpp): loops run in the default execution space of the Kokkos
# that was found.

# turnout_kokkos_device_library(NAME): a static library of them, for whatever space that is. Its names are those of the
# library turnout_kokkos: both can't be in one program.
function(turnout_kokkos_device_library name)
  set(folder ${CMAKE_SOURCE_DIR}/backends/kokkos)
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cpp ${folder}/device/*.cpp)
  add_library(${name} STATIC EXCLUDE_FROM_ALL ${sources})
  if(TURNOUT_PLUGIN STREQUAL cuda)
    set_source_files_properties(${sources} PROPERTIES LANGUAGE CUDA)
    target_compile_options(${name} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:-std=c++20;--expt-relaxed-constexpr>")
    # fmt 9 takes nvcc for a compiler without constexpr, and then its own functions don't fit together.
    target_compile_definitions(${name} PRIVATE FMT_USE_CONSTEXPR=1)
    set_target_properties(${name} PROPERTIES CUDA_VISIBILITY_PRESET hidden)
  else()
    target_link_libraries(${name} PRIVATE $<BUILD_INTERFACE:turnout_warnings>)
  endif()
  target_compile_definitions(${name} PUBLIC TURNOUT_KOKKOS_DEVICE=1)
  target_link_libraries(${name} PUBLIC turnout_ops Kokkos::kokkos)
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_EXTENSIONS OFF
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
endfunction()

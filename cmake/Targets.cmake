# The interface targets that all of Turnout's code is compiled with, and functions that make its targets.

add_library(turnout_warnings INTERFACE)
target_compile_options(turnout_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow
  # Warnings that come and go with the optimizer and the processor stay warnings.
  "$<$<BOOL:${TURNOUT_WERROR}>:-Werror;-Wno-error=maybe-uninitialized;-Wno-error=array-bounds;-Wno-error=stringop-overflow>"
  $<$<CXX_COMPILER_ID:GNU>:-Wno-psabi>
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>)  # false in std::string (GCC bug 105329)

add_library(turnout_config INTERFACE)
target_compile_features(turnout_config INTERFACE cxx_std_20)
target_include_directories(turnout_config INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}> $<BUILD_INTERFACE:${CMAKE_BINARY_DIR}>)
target_compile_options(turnout_config INTERFACE $<BUILD_INTERFACE:-march=${TURNOUT_CPU_ARCH}>)
target_link_libraries(turnout_config INTERFACE fmt::fmt Threads::Threads)
if(TURNOUT_SANITIZE)
  target_compile_options(turnout_config INTERFACE -fsanitize=${TURNOUT_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(turnout_config INTERFACE -fsanitize=${TURNOUT_SANITIZE})
  if(NOT TURNOUT_SANITIZE STREQUAL thread)
    target_compile_options(turnout_config INTERFACE -fno-sanitize-recover=all)
  endif()
  # Every test is a program with all of its debug information inside, which GNU ld takes its time over. Not for
  # libraries: gold lets unique symbols past the version script.
  include(CheckLinkerFlag)
  check_linker_flag(CXX -fuse-ld=gold TURNOUT_HAS_GOLD)
endif()

# turnout_precompile(TARGET HEADER...): what a library's files include anyway, parsed once. Only in sanitized builds, whose
# time is the compiler's.
function(turnout_precompile target)
  if(TURNOUT_SANITIZE)
    list(TRANSFORM ARGN PREPEND "${CMAKE_SOURCE_DIR}/" REGEX "^[^<]")
    target_precompile_headers(${target} PRIVATE ${ARGN})
  endif()
endfunction()

# turnout_sources(OUT PATTERN...): the .cpp files of this folder that match. New files are noticed by the next build.
function(turnout_sources out)
  list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  file(GLOB files CONFIGURE_DEPENDS LIST_DIRECTORIES false ${ARGN})
  set(${out} ${files} PARENT_SCOPE)
endfunction()

# turnout_library(NAME SOURCES ... LIBS ... PRIVATE_LIBS ...): a static library of Turnout's own code. LIBS are seen by
# those who link it, PRIVATE_LIBS (whose headers its own headers don't include) are not. Without sources it passes LIBS on.
function(turnout_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBS;PRIVATE_LIBS")
  set_property(GLOBAL APPEND PROPERTY TURNOUT_LIBRARIES ${name})
  if(NOT arg_SOURCES)
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE turnout_config ${arg_LIBS})
    return()
  endif()
  add_library(${name} STATIC ${arg_SOURCES})
  target_link_libraries(${name} PUBLIC turnout_config ${arg_LIBS}
    PRIVATE ${arg_PRIVATE_LIBS} $<BUILD_INTERFACE:turnout_warnings>)
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_EXTENSIONS OFF
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
endfunction()

# turnout_program(NAME SOURCES ... LIBS ...): a program in bin/; nothing when it has no sources.
function(turnout_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBS")
  if(NOT arg_SOURCES)
    return()
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE turnout_config turnout_warnings ${arg_LIBS})
  target_link_options(${name} PRIVATE $<$<BOOL:${TURNOUT_HAS_GOLD}>:-fuse-ld=gold>)
  set_target_properties(${name} PROPERTIES CXX_EXTENSIONS OFF CXX_VISIBILITY_PRESET hidden)
endfunction()

# turnout_test(NAME SOURCES ... LIBS ...): a Catch2 program in tests/ of the build tree and its one entry in ctest.
function(turnout_test name)
  turnout_program(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE Catch2::Catch2WithMain)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  if(TURNOUT_SANITIZE AND NOT name MATCHES kokkos)  # those have flags of their own
    get_property(first GLOBAL PROPERTY TURNOUT_PRECOMPILED_TEST)
    if(first)
      target_precompile_headers(${name} REUSE_FROM ${first})
    else()
      set_property(GLOBAL PROPERTY TURNOUT_PRECOMPILED_TEST ${name})
      turnout_precompile(${name} <catch2/catch_test_macros.hpp> <catch2/matchers/catch_matchers_string.hpp> core/graph.hpp
        runtime/session.hpp <algorithm> <functional> <map> <random> <string> <vector>)
    endif()
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT 300 LABELS unit SKIP_RETURN_CODE 4
    ENVIRONMENT "TURNOUT_MODELS=${CMAKE_SOURCE_DIR}/build/models;TURNOUT_SOURCE=${CMAKE_SOURCE_DIR}")
  set_property(GLOBAL APPEND PROPERTY TURNOUT_TEST_PROGRAMS ${name})
endfunction()

# turnout_plugin(NAME LIBS ...): a shared library with a static copy of everything inside and the one symbol that
# core/plugin.hpp names.
function(turnout_plugin name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LIBS")
  add_library(${name} MODULE ${CMAKE_SOURCE_DIR}/backends/gpu/plugin.cpp)
  target_link_libraries(${name} PRIVATE turnout_config $<BUILD_INTERFACE:turnout_warnings> ${arg_LIBS})
  target_link_options(${name} PRIVATE -Wl,--exclude-libs,ALL -Wl,--no-undefined
    -Wl,--version-script=${CMAKE_SOURCE_DIR}/cmake/turnout_plugin.map)
  set_target_properties(${name} PROPERTIES PREFIX "" CXX_EXTENSIONS OFF CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON LINK_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/turnout_plugin.map)
endfunction()

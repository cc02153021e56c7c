# turnout_embed_profiles(TARGET): compiles every profiles/*.json next to this file into TARGET, as the definition of
# turnout::embedded_profiles() (backends/gpu/profile.hpp). The generated source holds no paths. A changed or new
# profile configures again by itself.
set(TURNOUT_PROFILES_DIR "${CMAKE_CURRENT_LIST_DIR}/profiles")

function(turnout_embed_profiles target)
  file(GLOB profiles CONFIGURE_DEPENDS "${TURNOUT_PROFILES_DIR}/*.json")
  list(SORT profiles)
  set(delimiter "turnout_json")
  set(entries "")
  foreach(profile IN LISTS profiles)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${profile}")
    get_filename_component(name "${profile}" NAME)
    string(REGEX REPLACE "\\.json$" "" name "${name}")
    file(READ "${profile}" json)
    string(FIND "${json}" ")${delimiter}\"" clash)
    if(NOT clash EQUAL -1 OR NOT name MATCHES "^[a-z0-9._-]+$")
      message(FATAL_ERROR "the profile ${name}.json can't be embedded: its name or text holds forbidden characters")
    endif()
    string(APPEND entries "    {\"${name}\", R\"${delimiter}(${json})${delimiter}\"},\n")
  endforeach()
  if(entries STREQUAL "")
    message(FATAL_ERROR "no profiles in backends/gpu/profiles")
  endif()

  set(source "${CMAKE_CURRENT_BINARY_DIR}/embedded_profiles.cpp")
  # COPYONLY keeps the time stamp of an unchanged file, so nothing is compiled again for no reason.
  file(WRITE "${source}.in" "// Generated from backends/gpu/profiles/*.json.
#include \"backends/gpu/profile.hpp\"

namespace turnout {
namespace {

constexpr EmbeddedProfile kProfiles[] = {
${entries}};

}  // namespace

std::span<const EmbeddedProfile> embedded_profiles() { return kProfiles; }

}  // namespace turnout
")
  configure_file("${source}.in" "${source}" COPYONLY)
  target_sources(${target} PRIVATE "${source}")
endfunction()

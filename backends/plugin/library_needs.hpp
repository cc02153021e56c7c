#pragma once

#include <filesystem>
#include <string>

namespace turnout::plugin {

/// The newest glibc that a shared library's file asks for, "2.38"; "" when it asks for none or the
/// file is none of this system's libraries. Reads the file and opens nothing: dlopen names the
/// first library it misses, and says nothing of versions before it has found them all.
std::string needed_glibc(const std::filesystem::path& library);

/// True if version `a` ("2.4") is older than `b` ("2.36").
bool older_version(const std::string& a, const std::string& b);

}  // namespace turnout::plugin

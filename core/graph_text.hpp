#pragma once

#include <string_view>

// Which characters words of the text form are made of.
namespace turnout::text {

inline bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
inline bool is_word(char c) { return is_letter(c) || is_digit(c); }
inline bool is_name(char c) {
  return is_word(c) || std::string_view(".:/$-").find(c) != std::string_view::npos;
}

}  // namespace turnout::text

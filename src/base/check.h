// INGOT_CHECK: an assertion, on in every build, for what only a bug in this program can make false.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace ingot {

// Thrown by INGOT_CHECK; only cli/ and tests catch it.
class BugError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void report_bug(const char* file, int line, const char* condition, const std::string& message);

}  // namespace ingot

// INGOT_CHECK(condition, "format", args…): the message says what was expected and what was found.
#define INGOT_CHECK(condition, ...)                                                    \
  do {                                                                                 \
    if (!(condition)) [[unlikely]]                                                     \
      ::ingot::report_bug(__FILE__, __LINE__, #condition, ::fmt::format(__VA_ARGS__)); \
  } while (false)

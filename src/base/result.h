// Result<T>: a value or an Error, for whatever the world can do wrong (files, flags, configuration).
// What only a bug can do wrong is checked with INGOT_CHECK (base/check.h).
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace ingot {

// The numbers are the program's exit statuses.
enum class ErrorKind {
  failed = 1,   // went wrong while running, or what was to be checked does not hold
  usage = 2,    // wrong usage or configuration
  input = 3,    // an input file is missing, malformed or damaged
  stopped = 75  // stopped early on request, after saving
};

// The message says what is wrong, where, what was expected and found, and what to do: one message a person can act on.
struct Error {
  ErrorKind kind = ErrorKind::failed;
  std::string message;
};

template <class... Args>
[[nodiscard]] Error failed_error(fmt::format_string<Args...> format, Args&&... args) {
  return {ErrorKind::failed, fmt::format(format, std::forward<Args>(args)...)};
}
template <class... Args>
[[nodiscard]] Error usage_error(fmt::format_string<Args...> format, Args&&... args) {
  return {ErrorKind::usage, fmt::format(format, std::forward<Args>(args)...)};
}
template <class... Args>
[[nodiscard]] Error input_error(fmt::format_string<Args...> format, Args&&... args) {
  return {ErrorKind::input, fmt::format(format, std::forward<Args>(args)...)};
}

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: a value is a result
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: an error is a result

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  const Error& error() const { return std::get<1>(state_); }
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT: an error is a result

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};
using Status = Result<void>;

#define INGOT_CONCAT_INNER(a, b) a##b
#define INGOT_CONCAT(a, b) INGOT_CONCAT_INNER(a, b)

// Returns the error of a Status (or Result) from the enclosing function.
#define INGOT_TRY(expression)                                                              \
  do {                                                                                     \
    if (auto ingot_status = (expression); !ingot_status.ok()) return ingot_status.error(); \
  } while (false)

// INGOT_ASSIGN(auto x, f()): x is the value of f(), or the enclosing function returns f()'s error.
#define INGOT_ASSIGN(declaration, expression) \
  INGOT_ASSIGN_INNER(INGOT_CONCAT(ingot_result_, __LINE__), declaration, expression)
#define INGOT_ASSIGN_INNER(name, declaration, expression) \
  auto name = (expression);                               \
  if (!name.ok()) return name.error();                    \
  declaration = std::move(name).value()

}  // namespace ingot

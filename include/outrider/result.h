// SPDX-License-Identifier: Apache-2.0
// Errors as values: every fallible call of the library returns Result<T>; nothing throws across the public
// API.
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace outrider {

enum class ErrorKind {
  kUsage,     // the caller's request makes no sense; the command-line tool exits with 2
  kInput,     // a file or prompt is malformed, unsupported or too large
  kIo,        // the operating system refused
  kResource,  // out of memory, pages or context
};

// `message` is one line that says what was expected, what was found and what to do.
struct Error {
  ErrorKind kind = ErrorKind::kInput;
  std::string message;
};

inline Error usage_error(std::string message) { return {ErrorKind::kUsage, std::move(message)}; }
inline Error input_error(std::string message) { return {ErrorKind::kInput, std::move(message)}; }
inline Error io_error(std::string message) { return {ErrorKind::kIo, std::move(message)}; }
inline Error resource_error(std::string message) { return {ErrorKind::kResource, std::move(message)}; }

template <typename T, typename E = Error>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: implicit by design
  Result(E error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // Precondition: ok().
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  // Precondition: !ok().
  const E& error() const& { return std::get<1>(state_); }
  E&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, E> state_;
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error error) : error_(std::move(error)), ok_(false) {}  // NOLINT: implicit by design

  bool ok() const { return ok_; }
  explicit operator bool() const { return ok_; }
  const Error& error() const { return error_; }

 private:
  Error error_;
  bool ok_ = true;
};

}  // namespace outrider

#define OUTRIDER_CONCAT_INNER(a, b) a##b
#define OUTRIDER_CONCAT(a, b) OUTRIDER_CONCAT_INNER(a, b)

// OUTRIDER_TRY(auto x, f()): declares x from the value of f(), or returns f()'s error from this function.
#define OUTRIDER_TRY(declaration, expression) \
  OUTRIDER_TRY_INNER(OUTRIDER_CONCAT(result_, __LINE__), declaration, expression)
#define OUTRIDER_TRY_INNER(result, declaration, expression) \
  auto result = (expression);                               \
  if (!result.ok()) return std::move(result).error();       \
  declaration = std::move(result).value()

// OUTRIDER_RETURN_IF_ERROR(f()): returns the error of a Status from this function.
#define OUTRIDER_RETURN_IF_ERROR(expression) \
  if (auto status_in_macro = (expression); !status_in_macro.ok()) return status_in_macro.error()

// SPDX-License-Identifier: Apache-2.0
// Status and Result<T>: how every function of Purlin that can fail says so.
//
// A Status is either ok or a code with a text for a person: what was wrong, where, and what to do.
// A Result<T> is a T or such a Status. Neither throws; reading the value of a failed Result aborts.
// Thread-safety: values, as any other value type.
#pragma once

#include <fmt/core.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace purlin {

enum class Code {
  kOk,
  kInvalid,      // The user's input is wrong: a spec, an option, a file's contents.
  kNotFound,     // Something named does not exist.
  kUnavailable,  // This machine cannot do it: no device, no permission, no library.
  kIo,           // The operating system refused a read or write.
  kCorrupt,      // Data that Purlin wrote, or an import, is damaged or of a newer version.
  kFailed,       // The user's kernel or command failed.
  kTimeout,
  kCancelled,
};

std::string_view code_name(Code code);

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}
  static Status ok() { return {}; }

  bool is_ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }
  // The same status, its text prefixed with "CONTEXT: ". An ok status stays unchanged.
  Status with_context(std::string_view context) const;

 private:
  Code code_ = Code::kOk;
  std::string message_;
};

// error(Code::kInvalid, "{}: no such parameter '{}'", file, name)
template <class... Args>
Status error(Code code, fmt::format_string<Args...> format, Args&&... args) {
  return {code, fmt::format(format, std::forward<Args>(args)...)};
}

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}        // NOLINT: implicit
  Result(Status status) : state_(std::in_place_index<1>, std::move(status)) {  // NOLINT: implicit
    if (std::get<1>(state_).is_ok()) std::abort();  // an ok Status carries no value
  }

  bool is_ok() const { return state_.index() == 0; }
  Status status() const { return is_ok() ? Status::ok() : std::get<1>(state_); }
  const T& value() const& { return check(), std::get<0>(state_); }
  T& value() & { return check(), std::get<0>(state_); }
  T&& value() && { return check(), std::move(std::get<0>(state_)); }
  T value_or(T other) const { return is_ok() ? std::get<0>(state_) : std::move(other); }
  const T& operator*() const& { return value(); }
  T& operator*() & { return value(); }
  const T* operator->() const { return &value(); }
  T* operator->() { return &value(); }

 private:
  void check() const {
    if (!is_ok()) {
      fmt::print(stderr, "purlin: internal error: value of a failed result: {}\n",
                 std::get<1>(state_).message());
      std::abort();
    }
  }
  std::variant<T, Status> state_;
};

}  // namespace purlin

// PURLIN_TRY(status_expression): returns the status from the enclosing function if it is not ok.
#define PURLIN_TRY(expression)                                                   \
  do {                                                                           \
    if (::purlin::Status purlin_status_ = (expression); !purlin_status_.is_ok()) \
      return purlin_status_;                                                     \
  } while (false)

// PURLIN_ASSIGN(auto x, result_expression): binds the value or returns the failure.
#define PURLIN_CONCAT_(a, b) a##b
#define PURLIN_CONCAT(a, b) PURLIN_CONCAT_(a, b)
#define PURLIN_ASSIGN(lhs, expression) \
  PURLIN_ASSIGN_(PURLIN_CONCAT(purlin_result_, __LINE__), lhs, expression)
#define PURLIN_ASSIGN_(temporary, lhs, expression)   \
  auto temporary = (expression);                     \
  if (!temporary.is_ok()) return temporary.status(); \
  lhs = std::move(temporary).value()

// Status and Result: how a call that can fail says so.
//
//   pando::Result<pando::Attention> attention = pando::Attention::Create(options);
//   if (!attention.ok()) return Fail(attention.status().message());
//
// A message is one sentence for the person at the keyboard: what was wrong, where, and what to do. The library never
// prints, throws or exits.
#ifndef PANDO_STATUS_H_
#define PANDO_STATUS_H_

#include <string>
#include <utility>
#include <variant>

namespace pando {

enum class StatusCode {
  kOk,
  kInvalidArgument,  // The caller's value is wrong; calling again unchanged fails again.
  kOutOfMemory,      // The machine does not have what was asked for.
  kFailed,           // Something outside went wrong while running: a file, a peer, the system.
};

class [[nodiscard]] Status {
 public:
  Status() = default;  // OK
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

// Either a value or the Status that says why there is none. Reading the value of a failed Result is a bug in the caller
// (std::get throws std::bad_variant_access).
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_or_status_(std::move(value)) {}         // NOLINT(google-explicit-constructor)
  Result(Status status) : value_or_status_(std::move(status)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return std::holds_alternative<T>(value_or_status_); }
  Status status() const { return ok() ? Status() : std::get<Status>(value_or_status_); }

  T& value() & { return std::get<T>(value_or_status_); }
  const T& value() const& { return std::get<T>(value_or_status_); }
  T value() && { return std::get<T>(std::move(value_or_status_)); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }

 private:
  std::variant<T, Status> value_or_status_;
};

}  // namespace pando

#endif  // PANDO_STATUS_H_

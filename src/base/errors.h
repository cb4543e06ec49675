// Statuses with formatted messages: InvalidArgument("head_dim is {}: it must be a multiple of 8", head_dim).
#ifndef PANDO_SRC_BASE_ERRORS_H_
#define PANDO_SRC_BASE_ERRORS_H_

#include <fmt/format.h>

#include <utility>

#include "pando/status.h"

namespace pando {

template <typename... Args>
Status InvalidArgument(fmt::format_string<Args...> format, Args&&... args) {
  return {StatusCode::kInvalidArgument, fmt::format(format, std::forward<Args>(args)...)};
}

template <typename... Args>
Status OutOfMemory(fmt::format_string<Args...> format, Args&&... args) {
  return {StatusCode::kOutOfMemory, fmt::format(format, std::forward<Args>(args)...)};
}

template <typename... Args>
Status Failed(fmt::format_string<Args...> format, Args&&... args) {
  return {StatusCode::kFailed, fmt::format(format, std::forward<Args>(args)...)};
}

// For the macros below.
inline Status StatusFrom(Status status) { return status; }
template <typename T>
Status StatusFrom(const Result<T>& result) {
  return result.status();
}

}  // namespace pando

// What the macros declare and assign to cannot stand in parentheses: NOLINTBEGIN(bugprone-macro-parentheses)

// Returns from this function with the Status of `expression` (a Status or a Result) if it is not OK.
//
//   PANDO_RETURN_IF_ERROR(engine.Reserve(num_tokens));
#define PANDO_RETURN_IF_ERROR(expression)                                                     \
  do {                                                                                        \
    if (auto pando_status = ::pando::StatusFrom(expression); !pando_status.ok()) [[unlikely]] \
      return pando_status;                                                                    \
  } while (false)

// `declaration` gets the value of the Result `expression`, or this function returns with its Status. Two statements:
// not for the branch of an if without braces.
//
//   PANDO_ASSIGN_OR_RETURN(const Model model, Model::Open(path));
#define PANDO_ASSIGN_OR_RETURN(declaration, expression) \
  PANDO_ASSIGN_OR_RETURN_TO(PANDO_UNIQUE_NAME(pando_result_), declaration, expression)
#define PANDO_ASSIGN_OR_RETURN_TO(result, declaration, expression) \
  auto result = (expression);                                      \
  if (!result.ok()) [[unlikely]]                                   \
    return result.status();                                        \
  declaration = std::move(result).value()
#define PANDO_UNIQUE_NAME(prefix) PANDO_JOIN_NAMES(prefix, __LINE__)
#define PANDO_JOIN_NAMES(a, b) PANDO_JOIN_NAMES_NOW(a, b)
#define PANDO_JOIN_NAMES_NOW(a, b) a##b

// NOLINTEND(bugprone-macro-parentheses)

#endif  // PANDO_SRC_BASE_ERRORS_H_

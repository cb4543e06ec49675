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

}  // namespace pando

#endif  // PANDO_SRC_BASE_ERRORS_H_

// What every function of pando.h goes through: its pointers are checked, nothing is thrown out of it, and what went
// wrong is left for pando_last_error().
//
//   pando_status pando_attention_reserve(pando_attention* attention, int64_t num_tokens) {
//     return RunCall(__func__, {{attention, "attention"}}, [&] { return attention->attention.Reserve(num_tokens); });
//   }
#ifndef PANDO_SRC_C_API_CALL_H_
#define PANDO_SRC_C_API_CALL_H_

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>

#include "pando/communicator.h"
#include "pando/pando.h"
#include "pando/status.h"
#include "src/base/errors.h"

// What pando.h only names.
struct pando_communicator {  // NOLINT(readability-identifier-naming)
  std::shared_ptr<pando::Communicator> communicator;
  std::string transport;
};

namespace pando::c_api {

// A pointer that must not be NULL; an array may be where it has no elements.
struct PointerArgument {
  const void* pointer;
  const char* name;
  size_t num_elements = 1;
};
using PointerArguments = std::initializer_list<PointerArgument>;

Status CheckPointers(const char* function, PointerArguments pointers);

// Keeps the message for pando_last_error().
pando_status Report(const Status& status);
// The same for the exception that is being handled.
pando_status ReportException(const char* function) noexcept;

template <typename Call>
pando_status RunCall(const char* function, PointerArguments pointers, Call call) noexcept {
  try {
    const Status status = CheckPointers(function, pointers);
    return Report(status.ok() ? call() : status);
  } catch (...) {
    return ReportException(function);
  }
}

// A struct that a caller filled in, or wants filled in. A version that adds fields takes the sizes of older ones too.
template <typename Struct>
Status CheckSize(const char* name, const Struct& given, const char* how_to_set) {
  if (given.struct_size == sizeof(Struct)) return Status();
  return InvalidArgument("struct_size of {} is {}: this library knows {}; {}, and compile with this library's pando.h",
                         name, given.struct_size, sizeof(Struct), how_to_set);
}

template <typename Struct>
Status InitStruct(const char* name, Struct* options, size_t struct_size, const Struct& defaults) {
  if (struct_size != sizeof(Struct)) {
    return InvalidArgument("{} has {} bytes: this library knows {}; compile with this library's pando.h", name,
                           struct_size, sizeof(Struct));
  }
  *options = defaults;
  return Status();
}

// The value to where the caller wants it.
template <typename T>
Status Give(const Result<T>& result, T* place) {
  if (result.ok()) *place = *result;
  return result.status();
}

}  // namespace pando::c_api

#endif  // PANDO_SRC_C_API_CALL_H_

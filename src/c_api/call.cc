#include "src/c_api/call.h"

#include <exception>
#include <new>

namespace pando::c_api {
namespace {

// Points into last_message, or to what needs no memory.
thread_local const char* last_error = "";
thread_local std::string last_message;

pando_status CodeOf(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return PANDO_OK;
    case StatusCode::kInvalidArgument:
      return PANDO_INVALID_ARGUMENT;
    case StatusCode::kOutOfMemory:
      return PANDO_OUT_OF_MEMORY;
    case StatusCode::kFailed:
      break;
  }
  return PANDO_FAILED;
}

}  // namespace

Status CheckPointers(const char* function, PointerArguments pointers) {
  for (const PointerArgument& argument : pointers) {
    if (argument.pointer == nullptr && argument.num_elements > 0) {
      return InvalidArgument("{}: {} is NULL: it must point to {}", function, argument.name,
                             argument.num_elements == 1 ? std::string("a value of its type")
                                                        : fmt::format("{} elements", argument.num_elements));
    }
  }
  return Status();
}

pando_status Report(const Status& status) {
  if (status.ok()) return PANDO_OK;
  last_message = status.message();
  last_error = last_message.c_str();
  return CodeOf(status.code());
}

pando_status ReportException(const char* function) noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    last_error = "the machine does not have the memory that the call needs: free some, or use more machines";
    return PANDO_OUT_OF_MEMORY;
  } catch (const std::exception& exception) {
    try {
      return Report(Failed("{}: {}", function, exception.what()));
    } catch (...) {
    }
  } catch (...) {
  }
  last_error = "the call ended with an exception that says nothing";
  return PANDO_FAILED;
}

}  // namespace pando::c_api

const char* pando_last_error() { return pando::c_api::last_error; }

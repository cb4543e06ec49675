// PANDO_CHECK: for our own bugs only. What input or a peer can cause is a Status (pando/status.h).
#ifndef PANDO_SRC_BASE_CHECK_H_
#define PANDO_SRC_BASE_CHECK_H_

#include <cstdio>
#include <cstdlib>

namespace pando::internal {

[[noreturn]] inline void CheckFailed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "%s:%d: check failed: %s (this is a bug in Pando)\n", file, line, condition);
  std::abort();
}

}  // namespace pando::internal

#define PANDO_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::pando::internal::CheckFailed(__FILE__, __LINE__, #condition))

#endif  // PANDO_SRC_BASE_CHECK_H_

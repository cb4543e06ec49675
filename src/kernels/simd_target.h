// Which instruction set the kernels run on. All of them give the same bits; forcing one is for tests and for measuring
// what a wider vector buys.
#ifndef PANDO_SRC_KERNELS_SIMD_TARGET_H_
#define PANDO_SRC_KERNELS_SIMD_TARGET_H_

#include <string>
#include <string_view>
#include <vector>

#include "pando/status.h"

namespace pando {

// The targets that this build has and this machine can run, best first: "AVX3", "AVX2", "SCALAR".
std::vector<std::string> SupportedSimdTargets();

// The one that the kernels run on.
std::string ChosenSimdTarget();

// Runs all kernels on the named target from now on; an empty name goes back to the best one. For the whole process, and
// not while a kernel is running.
Status ForceSimdTarget(std::string_view name);

}  // namespace pando

#endif  // PANDO_SRC_KERNELS_SIMD_TARGET_H_

// What the options of all benchmarks may be.
#ifndef PANDO_SRC_CLI_COMMANDS_BENCH_RANGES_H_
#define PANDO_SRC_CLI_COMMANDS_BENCH_RANGES_H_

#include "src/cli/size_list.h"

namespace pando::cli {

inline constexpr SizeRange kThreadRange = {.min = 1, .max = 1024};
inline constexpr SizeRange kRepeatRange = {.min = 1, .max = 1'000'000};

}  // namespace pando::cli

#endif  // PANDO_SRC_CLI_COMMANDS_BENCH_RANGES_H_

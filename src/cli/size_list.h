// Whole numbers as people type them on a command line: "64K" is 65536, "8K,64K,256K" is a list, and so is "8K..64K,1M",
// with 8K doubled while it is at most 64K.
//
// K is 1024, M is 1024 K, G is 1024 M; small letters too. With one of them the number may have a fraction, "1.5K"; what
// is left of the last byte or token is dropped. A value that is not one of these, or is outside the range
// that the option allows, is an InvalidArgument that names the option, the value and what is allowed.
#ifndef PANDO_SRC_CLI_SIZE_LIST_H_
#define PANDO_SRC_CLI_SIZE_LIST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pando/status.h"

namespace pando::cli {

struct SizeRange {
  int64_t min = 1;
  int64_t max = int64_t{1} << 40;
};

// `option` ("--contexts") is only for the message.
Result<int64_t> ParseSize(std::string_view option, std::string_view text, SizeRange range = {});
// The same, and -1 for none.
Result<std::optional<int64_t>> ParseSizeOrNone(std::string_view option, std::string_view text, SizeRange range = {});
Result<std::vector<int64_t>> ParseSizeList(std::string_view option, std::string_view text, SizeRange range = {});

// The parts of "a,b,c" between the commas, at least one; "a,,b" has an empty one.
std::vector<std::string_view> SplitAtCommas(std::string_view text);

}  // namespace pando::cli

#endif  // PANDO_SRC_CLI_SIZE_LIST_H_

// Tokens as text: "1 15043 3186", or a JSON array "[1, 15043, 3186]".
#ifndef PANDO_SRC_CLI_TOKEN_LIST_H_
#define PANDO_SRC_CLI_TOKEN_LIST_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pando/status.h"

namespace pando::cli {

// Ids with white space or commas between them, in brackets or not. One that is not from 0 to `vocabulary_size` - 1 is
// an InvalidArgument that names it.
Result<std::vector<int32_t>> ParseTokens(std::string_view text, int32_t vocabulary_size);

// The ids with `separator` between them.
std::string FormatTokens(std::span<const int32_t> tokens, std::string_view separator);

}  // namespace pando::cli

#endif  // PANDO_SRC_CLI_TOKEN_LIST_H_

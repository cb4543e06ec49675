// Numbers that need not be whole, as people type them on a command line: "2.5", and lists of them, "1,1,0.5".
#ifndef PANDO_SRC_CLI_DECIMAL_LIST_H_
#define PANDO_SRC_CLI_DECIMAL_LIST_H_

#include <string_view>
#include <vector>

#include "pando/status.h"

namespace pando::cli {

struct DecimalRange {
  double min = 0;
  double max = 1e9;
};

// `option` ("--timeout") is only for the message, which also names the value and what is allowed.
Result<double> ParseDecimal(std::string_view option, std::string_view text, DecimalRange range = {});
Result<std::vector<double>> ParseDecimalList(std::string_view option, std::string_view text, DecimalRange range = {});

}  // namespace pando::cli

#endif  // PANDO_SRC_CLI_DECIMAL_LIST_H_

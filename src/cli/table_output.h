// Rows of named values as a table: aligned markdown for people, CSV for a spreadsheet, JSON and JSON lines for
// programs.
//
//   const std::vector<Row> rows = {{{"context", 65536}, {"median_us", Decimal{812.345, 1}}}};
//   fmt::print("{}", RenderTable(rows, TableFormat::kMarkdown));
#ifndef PANDO_SRC_CLI_TABLE_OUTPUT_H_
#define PANDO_SRC_CLI_TABLE_OUTPUT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "pando/status.h"

namespace pando::cli {

enum class TableFormat { kMarkdown, kCsv, kJson, kJsonLines };

// "md", "csv", "json", "jsonl"; `option` ("-o") is only for the message.
Result<TableFormat> ParseTableFormat(std::string_view option, std::string_view name);

// A measured number and how many digits after the point of it mean something.
struct Decimal {
  double value = 0;
  int digits = 1;
};

struct Field {
  std::string name;
  std::variant<std::string, int64_t, Decimal> value;
};
using Row = std::vector<Field>;

// All rows must have the same names in the same order. In JSON the keys keep that order and numbers stay numbers,
// rounded to their digits; one that is not finite is null there, and nan or inf in the other formats. No rows: an empty
// JSON array, otherwise nothing.
std::string RenderTable(const std::vector<Row>& rows, TableFormat format);

}  // namespace pando::cli

#endif  // PANDO_SRC_CLI_TABLE_OUTPUT_H_

// Rows of named values as a table: aligned markdown for people, CSV for a spreadsheet, JSON and JSON lines for
// programs, SQL for a database.
//
//   const std::vector<Row> rows = {{{"context", 65536}, {"median_us", Decimal{812.345, 1}}}};
//   fmt::print("{}", RenderTable(rows, TableFormat::kMarkdown));
#ifndef PANDO_SRC_CLI_REPORTS_TABLE_OUTPUT_H_
#define PANDO_SRC_CLI_REPORTS_TABLE_OUTPUT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "pando/status.h"

namespace pando::cli {

enum class TableFormat { kMarkdown, kCsv, kJson, kJsonLines, kSql };

// "md", "csv", "json", "jsonl", "sql"; `option` ("-o") is only for the message.
Result<TableFormat> ParseTableFormat(std::string_view option, std::string_view name);

// A measured number and how many digits after the point of it mean something.
struct Decimal {
  double value = 0;
  int digits = 1;
};

// What a row does not have: null, an empty cell, a dash.
struct Absent {};

struct Field {
  std::string name;
  std::variant<std::string, int64_t, bool, Decimal, Absent, std::vector<int64_t>, std::vector<Decimal>> value;
};
using Row = std::vector<Field>;

// All rows must have the same names in the same order. In JSON the keys keep that order and numbers stay numbers,
// rounded to their digits; one that is not finite is null there and in SQL, and nan or inf in the other formats. Lists
// are arrays in JSON and text elsewhere; a bool is 1 or 0 in SQL, else true or false. No rows: an empty JSON array,
// otherwise nothing. `name` is that of the SQL table, which is made if there is none yet.
std::string RenderTable(const std::vector<Row>& rows, TableFormat format, std::string_view name = "pando");

}  // namespace pando::cli

#endif  // PANDO_SRC_CLI_REPORTS_TABLE_OUTPUT_H_

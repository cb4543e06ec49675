#include "src/cli/table_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "src/base/errors.h"

namespace pando::cli {
namespace {

bool IsText(const Field& field) { return std::holds_alternative<std::string>(field.value); }

std::string ToText(const Field& field) {
  if (const auto* text = std::get_if<std::string>(&field.value)) return *text;
  if (const auto* number = std::get_if<int64_t>(&field.value)) return fmt::format("{}", *number);
  const auto& decimal = std::get<Decimal>(field.value);
  return fmt::format("{:.{}f}", decimal.value, decimal.digits);
}

nlohmann::ordered_json ToJson(const Field& field) {
  if (const auto* text = std::get_if<std::string>(&field.value)) return *text;
  if (const auto* number = std::get_if<int64_t>(&field.value)) return *number;
  const auto& decimal = std::get<Decimal>(field.value);
  const double power = std::pow(10.0, decimal.digits);
  return std::round(decimal.value * power) / power;
}

nlohmann::ordered_json ToJson(const Row& row) {
  auto object = nlohmann::ordered_json::object();
  for (const Field& field : row) object[field.name] = ToJson(field);
  return object;
}

std::string RenderJson(const std::vector<Row>& rows) {
  auto array = nlohmann::ordered_json::array();
  for (const Row& row : rows) array.push_back(ToJson(row));
  return array.dump(2) + "\n";
}

std::string RenderJsonLines(const std::vector<Row>& rows) {
  std::string out;
  for (const Row& row : rows) out += ToJson(row).dump() + "\n";
  return out;
}

// RFC 4180: quotes only where the text would be read otherwise.
std::string CsvCell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

std::string RenderCsv(const std::vector<Row>& rows) {
  if (rows.empty()) return "";
  const auto add_line = [](std::string& out, const Row& row, auto cell) {
    for (size_t i = 0; i < row.size(); ++i) {
      if (i != 0) out += ",";
      out += CsvCell(cell(row[i]));
    }
    out += "\n";
  };
  std::string out;
  add_line(out, rows[0], [](const Field& field) { return field.name; });
  for (const Row& row : rows) add_line(out, row, ToText);
  return out;
}

// Cells are padded so that the source of the table reads as a table too: text to the left, numbers to the right.
std::string RenderMarkdown(const std::vector<Row>& rows) {
  if (rows.empty()) return "";
  std::vector<size_t> widths;
  for (size_t i = 0; i < rows[0].size(); ++i) {
    size_t width = rows[0][i].name.size();
    for (const Row& row : rows) width = std::max(width, ToText(row[i]).size());
    widths.push_back(width);
  }
  const auto add_line = [&](std::string& out, const Row& row, auto cell) {
    for (size_t i = 0; i < row.size(); ++i) {
      out += IsText(rows[0][i]) ? fmt::format("| {:<{}} ", cell(row[i]), widths[i])
                                : fmt::format("| {:>{}} ", cell(row[i]), widths[i]);
    }
    out += "|\n";
  };
  std::string out;
  add_line(out, rows[0], [](const Field& field) { return field.name; });
  for (size_t i = 0; i < widths.size(); ++i) {
    out += IsText(rows[0][i]) ? fmt::format("|:{:-<{}}-", "", widths[i]) : fmt::format("|-{:-<{}}:", "", widths[i]);
  }
  out += "|\n";
  for (const Row& row : rows) add_line(out, row, ToText);
  return out;
}

}  // namespace

Result<TableFormat> ParseTableFormat(std::string_view option, std::string_view name) {
  if (name == "md") return TableFormat::kMarkdown;
  if (name == "csv") return TableFormat::kCsv;
  if (name == "json") return TableFormat::kJson;
  if (name == "jsonl") return TableFormat::kJsonLines;
  return InvalidArgument("{} has the value \"{}\": it must be md, csv, json or jsonl", option, name);
}

std::string RenderTable(const std::vector<Row>& rows, TableFormat format) {
  switch (format) {
    case TableFormat::kCsv:
      return RenderCsv(rows);
    case TableFormat::kJson:
      return RenderJson(rows);
    case TableFormat::kJsonLines:
      return RenderJsonLines(rows);
    case TableFormat::kMarkdown:
      break;
  }
  return RenderMarkdown(rows);
}

}  // namespace pando::cli

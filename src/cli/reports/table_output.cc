#include "src/cli/reports/table_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "src/base/errors.h"

namespace pando::cli {
namespace {

template <typename... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <typename... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

bool IsText(const Field& field) { return std::holds_alternative<std::string>(field.value); }

std::string ToText(const Decimal& decimal) { return fmt::format("{:.{}f}", decimal.value, decimal.digits); }
std::string ToText(int64_t number) { return fmt::format("{}", number); }
std::string ToText(bool value) { return value ? "true" : "false"; }

template <typename T>
std::string ToText(const std::vector<T>& values) {
  std::vector<std::string> texts;
  texts.reserve(values.size());
  for (const T& value : values) texts.push_back(ToText(value));
  return fmt::format("{}", fmt::join(texts, " "));
}

std::string ToText(const Field& field, std::string_view absent = "") {
  return std::visit(
      Overloaded{[](const std::string& text) { return text; }, [&](Absent) { return std::string(absent); },
                 [](const auto& value) { return ToText(value); }},
      field.value);
}

using Json = nlohmann::ordered_json;

Json ToJson(int64_t number) { return number; }
Json ToJson(bool value) { return value; }

Json ToJson(const Decimal& decimal) {
  const double power = std::pow(10.0, decimal.digits);
  return std::round(decimal.value * power) / power;
}

template <typename T>
Json ToJson(const std::vector<T>& values) {
  auto array = Json::array();
  for (const T& value : values) array.push_back(ToJson(value));
  return array;
}

Json ToJson(const Field& field) {
  return std::visit(Overloaded{[](const std::string& text) { return Json(text); }, [](Absent) { return Json(); },
                               [](const auto& value) { return ToJson(value); }},
                    field.value);
}

Json ToJson(const Row& row) {
  auto object = Json::object();
  for (const Field& field : row) object[field.name] = ToJson(field);
  return object;
}

std::string RenderJson(const std::vector<Row>& rows) {
  auto array = Json::array();
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
  const auto text = [](const Field& field) { return ToText(field); };
  for (const Row& row : rows) add_line(out, row, text);
  return out;
}

// A bar would end the cell.
std::string MarkdownCell(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '|') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

// Cells are padded so that the source of the table reads as a table too: text to the left, numbers to the right.
std::string RenderMarkdown(const std::vector<Row>& rows) {
  if (rows.empty()) return "";
  const auto text = [](const Field& field) { return MarkdownCell(ToText(field, "-")); };
  std::vector<size_t> widths;
  for (size_t i = 0; i < rows[0].size(); ++i) {
    size_t width = rows[0][i].name.size();
    for (const Row& row : rows) width = std::max(width, text(row[i]).size());
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
  for (const Row& row : rows) add_line(out, row, text);
  return out;
}

std::string SqlText(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') quoted += '\'';
    quoted += c;
  }
  return quoted + "'";
}

std::string SqlValue(const Field& field) {
  return std::visit(
      Overloaded{
          [](Absent) -> std::string { return "NULL"; }, [](int64_t number) { return ToText(number); },
          [](bool value) -> std::string { return value ? "1" : "0"; },
          [](const Decimal& decimal) -> std::string { return std::isfinite(decimal.value) ? ToText(decimal) : "NULL"; },
          [&](const auto&) { return SqlText(ToText(field)); }},
      field.value);
}

// Absent is a number that is not there.
std::string_view SqlType(const Field& field) {
  if (std::holds_alternative<int64_t>(field.value) || std::holds_alternative<bool>(field.value)) return "INTEGER";
  const bool is_real = std::holds_alternative<Decimal>(field.value) || std::holds_alternative<Absent>(field.value);
  return is_real ? "REAL" : "TEXT";
}

std::string RenderSql(const std::vector<Row>& rows, std::string_view name) {
  if (rows.empty()) return "";
  std::vector<std::string> columns;
  std::vector<std::string> names;
  for (const Field& field : rows[0]) {
    columns.push_back(fmt::format("  {} {}", field.name, SqlType(field)));
    names.push_back(field.name);
  }
  std::string out = fmt::format("CREATE TABLE IF NOT EXISTS {} (\n{}\n);\n\n", name, fmt::join(columns, ",\n"));
  for (const Row& row : rows) {
    std::vector<std::string> values;
    for (const Field& field : row) values.push_back(SqlValue(field));
    out += fmt::format("INSERT INTO {} ({}) VALUES ({});\n", name, fmt::join(names, ", "), fmt::join(values, ", "));
  }
  return out;
}

}  // namespace

Result<TableFormat> ParseTableFormat(std::string_view option, std::string_view name) {
  if (name == "md") return TableFormat::kMarkdown;
  if (name == "csv") return TableFormat::kCsv;
  if (name == "json") return TableFormat::kJson;
  if (name == "jsonl") return TableFormat::kJsonLines;
  if (name == "sql") return TableFormat::kSql;
  return InvalidArgument("{} has the value \"{}\": it must be md, csv, json, jsonl or sql", option, name);
}

std::string RenderTable(const std::vector<Row>& rows, TableFormat format, std::string_view name) {
  switch (format) {
    case TableFormat::kCsv:
      return RenderCsv(rows);
    case TableFormat::kJson:
      return RenderJson(rows);
    case TableFormat::kJsonLines:
      return RenderJsonLines(rows);
    case TableFormat::kSql:
      return RenderSql(rows, name);
    case TableFormat::kMarkdown:
      break;
  }
  return RenderMarkdown(rows);
}

}  // namespace pando::cli

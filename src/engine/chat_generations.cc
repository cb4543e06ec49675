#include "src/engine/chat_generations.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <map>
#include <string_view>
#include <system_error>
#include <vector>

#include "src/base/file.h"

namespace pando {
namespace {

constexpr size_t kIdDigits = 16;

// What comes after "FILE." in the names of the files beside FILE.
std::vector<std::string> NamesBeside(const std::filesystem::path& path) {
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  const std::string start = path.filename().string() + ".";
  std::vector<std::string> rests;
  std::error_code error;
  std::filesystem::directory_iterator file(folder, error);
  for (; !error && file != std::filesystem::directory_iterator(); file.increment(error)) {
    const std::string name = file->path().filename().string();
    if (name.starts_with(start)) rests.push_back(name.substr(start.size()));
  }
  return rests;
}

// The number that `digits` are, all of them; none if they are something else.
std::optional<uint64_t> NumberOf(std::string_view digits, int base) {
  if (digits.empty() || digits.find_first_not_of("0123456789abcdef") != std::string_view::npos) return std::nullopt;
  uint64_t number = 0;
  const char* const end = digits.data() + digits.size();
  const auto [after, error] = std::from_chars(digits.data(), end, number, base);
  return error == std::errc() && after == end ? std::optional(number) : std::nullopt;
}

// "RANK-of-RANKS", perhaps under one of the names it has while it is written.
bool IsRankFile(std::string_view name) {
  const size_t middle = name.find("-of-");
  if (middle == std::string_view::npos) return false;
  const std::string_view rest = name.substr(middle + 4);
  const std::string_view ranks = rest.substr(0, rest.find('.'));
  const std::string_view end = rest.substr(ranks.size());
  return NumberOf(name.substr(0, middle), 10).has_value() && NumberOf(ranks, 10).has_value() &&
         (end.empty() || end.starts_with(".new") || end.starts_with(".partial-"));
}

// The generation of a file "ID.partial" or "ID.RANK-of-RANKS"; none if it is another file.
std::optional<uint64_t> GenerationOf(std::string_view rest) {
  if (rest.size() <= kIdDigits || rest[kIdDigits] != '.') return std::nullopt;
  const std::string_view name = rest.substr(kIdDigits + 1);
  return name == "partial" || IsRankFile(name) ? NumberOf(rest.substr(0, kIdDigits), 16) : std::nullopt;
}

}  // namespace

std::string GenerationPrefix(const std::string& path, uint64_t id) { return fmt::format("{}.{:016x}", path, id); }

std::string GenerationPartial(const std::string& path, uint64_t id) { return GenerationPrefix(path, id) + ".partial"; }

void RemoveOtherGenerations(const std::string& path, const std::function<std::optional<uint64_t>()>& named) {
  std::map<uint64_t, std::vector<std::string>> generations;
  for (const std::string& rest : NamesBeside(path)) {
    if (const std::optional<uint64_t> id = GenerationOf(rest)) generations[*id].push_back(rest);
  }
  std::error_code error;
  for (const auto& [id, rests] : generations) {
    const std::string partial = GenerationPartial(path, id);
    if (std::filesystem::exists(partial, error) && !IsLeftover(partial)) continue;
    // After the look at the partial file: if it was not there because it had just become FILE, FILE says so.
    if (named() == id) continue;
    for (const std::string& rest : rests) std::filesystem::remove(fmt::format("{}.{}", path, rest), error);
  }
}

void RemoveUnnamedRankFiles(const std::string& path) {
  std::error_code error;
  for (const std::string& rest : NamesBeside(path)) {
    if (IsRankFile(rest)) std::filesystem::remove(fmt::format("{}.{}", path, rest), error);
  }
}

}  // namespace pando

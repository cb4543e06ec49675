#include "src/planning/platform_file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "src/base/errors.h"
#include "src/base/file.h"
#include "src/base/printable.h"

namespace pando {
namespace {

using Json = nlohmann::ordered_json;

// A value as it is written, but not what is inside of others: that may be endless, or nested without end.
std::string Describe(const Json& value) {
  if (value.is_array()) return "a list";
  if (value.is_object()) return "an object";
  constexpr size_t kMostBytes = 40;
  return Printable(value.dump(-1, ' ', false, Json::error_handler_t::replace), kMostBytes);
}

// One object of the file. The first thing that is wrong with it is kept, so that reading is a list of what is read.
class Group {
 public:
  // `path` is "" for the whole file, else the key of the group.
  Group(const Json& object, std::string_view path, std::string_view what, Status& status)
      : object_(object), path_(path), what_(what), status_(status) {
    if (!object.is_object()) Fail(path_, "an object in braces");
  }

  double Number(std::string_view key, double least) {
    constexpr double kMost = 1e18;
    const Json* value = Find(key);
    const double number = value != nullptr && value->is_number() ? value->get<double>() : -1;
    if (value != nullptr && !(number >= least && number <= kMost)) {
      Fail(key, fmt::format("a number of at least {:g} and at most {:g}", least, kMost));
    }
    return number;
  }

  int Count(std::string_view key, int most) {
    const Json* value = Find(key);
    if (value == nullptr) return 1;
    // 8.0 is an integer, too.
    const double number = value->is_number() ? value->get<double>() : 0;
    if (!(number >= 1 && number <= most && number == std::floor(number))) {
      Fail(key, fmt::format("an integer from 1 to {}", most));
      return 1;
    }
    return static_cast<int>(number);
  }

  std::string Text(std::string_view key) {
    const Json* value = Find(key);
    if (value == nullptr) return {};
    if (!value->is_string() || value->get_ref<const std::string&>().empty()) {
      Fail(key, "a text that is not empty");
      return {};
    }
    return value->get<std::string>();
  }

  // An empty group where there is none, which is an error.
  Group Inner(std::string_view key) {
    const Json* value = Find(key);
    static const Json empty = Json::object();
    return Group(value == nullptr ? empty : *value, key, what_, status_);
  }

  bool Has(std::string_view key) const { return object_.is_object() && object_.contains(key); }

  // To be called last: whatever has not been asked for is unknown.
  void RefuseOthers() {
    if (!object_.is_object()) return;
    for (const auto& [key, value] : object_.items()) {
      if (std::ranges::find(known_, key) != known_.end() || !status_.ok()) continue;
      status_ = InvalidArgument("{}: unknown key \"{}\": {} has {}", what_, Printable(PathOf(key)),
                                path_.empty() ? std::string("a platform") : fmt::format("\"{}\"", path_),
                                fmt::join(known_, ", "));
    }
  }

 private:
  std::string PathOf(std::string_view key) const {
    return path_.empty() || path_ == key ? std::string(key) : fmt::format("{}.{}", path_, key);
  }

  const Json* Find(std::string_view key) {
    known_.emplace_back(key);
    if (!object_.is_object() || !status_.ok()) return nullptr;
    const auto found = object_.find(key);
    if (found != object_.end()) return &*found;
    status_ = InvalidArgument("{}: the key \"{}\" is missing", what_, PathOf(key));
    return nullptr;
  }

  void Fail(std::string_view key, std::string_view allowed) {
    if (!status_.ok()) return;
    const Json& value = path_ == key || key.empty() ? object_ : object_.at(key);
    const std::string where = key.empty() ? std::string("a platform") : fmt::format("\"{}\"", PathOf(key));
    status_ = InvalidArgument("{}: {} is {}: it must be {}", what_, where, Describe(value), allowed);
  }

  const Json& object_;
  std::string path_;
  std::string_view what_;
  Status& status_;
  std::vector<std::string> known_;
};

// Bytes, and bytes or operations per second: divided by less, times are no numbers any more.
constexpr double kLeast = 1;

DeviceModel ReadDevice(Group group) {
  const DeviceModel device = {.memory_bytes = group.Number("memory_bytes", kLeast),
                              .memory_bytes_per_second = group.Number("memory_bytes_per_second", kLeast),
                              .flops_per_second = group.Number("flops_per_second", kLeast),
                              .launch_overhead_seconds = group.Number("launch_overhead_seconds", 0)};
  group.Text("source");
  group.RefuseOthers();
  return device;
}

LinkModel ReadLink(Group group) {
  const LinkModel link = {.latency_seconds = group.Number("latency_seconds", 0),
                          .bytes_per_second = group.Number("bytes_per_second", kLeast),
                          .send_overhead_seconds = group.Number("send_overhead_seconds", 0),
                          .receive_overhead_seconds = group.Number("receive_overhead_seconds", 0)};
  group.Text("source");
  group.RefuseOthers();
  return link;
}

Status CheckOverheads(const LinkModel& link, std::string_view key, std::string_view what) {
  if (link.send_overhead_seconds + link.receive_overhead_seconds <= link.latency_seconds) return Status();
  return InvalidArgument(
      "{}: the overheads of \"{}\" are {:g} s together and its latency is {:g} s: they are a part of it and "
      "cannot be more",
      what, key, link.send_overhead_seconds + link.receive_overhead_seconds, link.latency_seconds);
}

Result<std::string> ReadText(const std::string& path) {
  const Result<InputFile> file = InputFile::Open(path);
  if (!file.ok()) return InvalidArgument("{}", file.status().message());
  constexpr uint64_t kMostBytes = 1 << 20;
  if (file->size() > kMostBytes) {
    return InvalidArgument("{} has {} bytes: a platform file has at most {}", path, file->size(), kMostBytes);
  }
  std::string text(static_cast<size_t>(file->size()), '\0');
  PANDO_RETURN_IF_ERROR(file->ReadAt(0, std::as_writable_bytes(std::span(text))));
  return text;
}

}  // namespace

Result<Platform> ParsePlatform(std::string_view json, std::string_view what) {
  Json file;
  try {
    file = Json::parse(json);
  } catch (const Json::parse_error& error) {
    return InvalidArgument("{} is not JSON: something is wrong at byte {} of {}", what, error.byte, json.size());
  }
  Status status;
  Group top(file, "", what, status);
  Platform platform = {.name = top.Text("name"),
                       .description = top.Text("description"),
                       .max_nodes = top.Count("max_nodes", 1 << 16),
                       .ranks_per_node = top.Count("ranks_per_node", 1 << 10),
                       .ports_per_node = top.Count("ports_per_node", 1 << 10),
                       .device = ReadDevice(top.Inner("device")),
                       .within_node = ReadLink(top.Inner("within_node"))};
  if (platform.max_nodes > 1 || top.Has("between_nodes")) platform.between_nodes = ReadLink(top.Inner("between_nodes"));
  top.Text("source");
  top.RefuseOthers();
  if (status.ok()) status = CheckOverheads(platform.within_node, "within_node", what);
  if (status.ok()) status = CheckOverheads(platform.between_nodes, "between_nodes", what);
  if (!status.ok()) return status;
  return platform;
}

Result<Platform> FindPlatform(std::string_view name_or_path) {
  const bool is_path = name_or_path.find('/') != std::string_view::npos || name_or_path.ends_with(".json");
  if (is_path) {
    PANDO_ASSIGN_OR_RETURN(const std::string text, ReadText(std::string(name_or_path)));
    return ParsePlatform(text, name_or_path);
  }
  std::vector<std::string_view> names;
  for (const ShippedPlatform& shipped : ShippedPlatforms()) {
    if (shipped.name == name_or_path) return ParsePlatform(shipped.json, shipped.name);
    names.push_back(shipped.name);
  }
  return InvalidArgument("unknown platform '{}': it must be one of {}, or the path of a .json file",
                         Printable(name_or_path), fmt::join(names, ", "));
}

}  // namespace pando

#include "src/planning/platform_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace pando {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using Json = nlohmann::ordered_json;

Json Valid() {
  const Json link = {{"latency_seconds", 1e-6},
                     {"bytes_per_second", 1e9},
                     {"send_overhead_seconds", 2e-7},
                     {"receive_overhead_seconds", 3e-7},
                     {"source", "invented"}};
  return {{"name", "pair"},
          {"description", "two"},
          {"max_nodes", 2},
          {"ranks_per_node", 4},
          {"ports_per_node", 3},
          {"source", "invented"},
          {"device",
           {{"memory_bytes", 16e9},
            {"memory_bytes_per_second", 1e11},
            {"flops_per_second", 1e12},
            {"launch_overhead_seconds", 1e-5},
            {"source", "invented"}}},
          {"within_node", link},
          {"between_nodes", link}};
}

Status StatusOf(const Json& json) { return ParsePlatform(json.dump(), "my.json").status(); }

// What is said of a file with one value changed. `pointer` is "/device/memory_bytes".
std::string MessageWith(const std::string& pointer, const Json& value) {
  Json json = Valid();
  json[Json::json_pointer(pointer)] = value;
  const Status status = StatusOf(json);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << pointer;
  return status.message();
}

TEST(ParsePlatformTest, ReadsEveryKey) {
  const Result<Platform> platform = ParsePlatform(Valid().dump(), "my.json");
  ASSERT_TRUE(platform.ok()) << platform.status().message();
  const LinkModel link = {1e-6, 1e9, 2e-7, 3e-7};
  EXPECT_EQ(*platform, (Platform{"pair", "two", 2, 4, 3, {16e9, 1e11, 1e12, 1e-5}, link, link}));
}

TEST(ParsePlatformTest, OneNodeNeedsNoNetwork) {
  Json json = Valid();
  json.erase("between_nodes");
  EXPECT_EQ(StatusOf(json).message(), "my.json: the key \"between_nodes\" is missing");
  json["max_nodes"] = 1;
  EXPECT_TRUE(StatusOf(json).ok());
}

TEST(ParsePlatformTest, EveryKeyIsNeeded) {
  const Json valid = Valid();
  for (const auto& [key, value] : valid.items()) {
    Json json = valid;
    json.erase(key);
    EXPECT_EQ(StatusOf(json).message(), "my.json: the key \"" + key + "\" is missing");
    if (!value.is_object()) continue;
    for (const auto& [inner, unused] : value.items()) {
      json = valid;
      json[key].erase(inner);
      EXPECT_EQ(StatusOf(json).message(), "my.json: the key \"" + key + "." + inner + "\" is missing");
    }
  }
}

TEST(ParsePlatformTest, NamesUnknownKeys) {
  EXPECT_EQ(MessageWith("/nodes", 3),
            "my.json: unknown key \"nodes\": a platform has name, description, max_nodes, ranks_per_node, "
            "ports_per_node, device, within_node, between_nodes, source");
  EXPECT_EQ(MessageWith("/device/flops", 3),
            "my.json: unknown key \"device.flops\": \"device\" has memory_bytes, memory_bytes_per_second, "
            "flops_per_second, launch_overhead_seconds, source");
  EXPECT_THAT(MessageWith("/within_node/\x1b[31m", 3), HasSubstr("\"within_node.\\x1b[31m\""));
}

TEST(ParsePlatformTest, NamesWrongTypes) {
  EXPECT_EQ(MessageWith("/name", 3), "my.json: \"name\" is 3: it must be a text that is not empty");
  EXPECT_EQ(MessageWith("/device/source", ""),
            "my.json: \"device.source\" is \"\": it must be a text that is not empty");
  EXPECT_EQ(MessageWith("/max_nodes", "two"),
            "my.json: \"max_nodes\" is \"two\": it must be an integer from 1 to 65536");
  EXPECT_EQ(MessageWith("/device", 3), "my.json: \"device\" is 3: it must be an object in braces");
  EXPECT_EQ(MessageWith("/within_node", nullptr), "my.json: \"within_node\" is null: it must be an object in braces");
  EXPECT_EQ(
      MessageWith("/between_nodes/latency_seconds", "1us"),
      "my.json: \"between_nodes.latency_seconds\" is \"1us\": it must be a number of at least 0 and at most 1e+18");
  EXPECT_EQ(StatusOf(Json::array()).message(), "my.json: a platform is a list: it must be an object in braces");
  EXPECT_EQ(MessageWith("/name", Json::object()),
            "my.json: \"name\" is an object: it must be a text that is not empty");
}

TEST(ParsePlatformTest, NamesValuesOutOfRange) {
  for (const double value : {0.0, 1.5, -1.0, 65537.0, 1e300}) {
    EXPECT_THAT(MessageWith("/max_nodes", value), HasSubstr("it must be an integer from 1 to 65536"));
  }
  EXPECT_THAT(MessageWith("/ranks_per_node", 1025), HasSubstr("it must be an integer from 1 to 1024"));
  EXPECT_THAT(MessageWith("/ports_per_node", 0), HasSubstr("it must be an integer from 1 to 1024"));
  EXPECT_EQ(MessageWith("/device/memory_bytes", 0),
            "my.json: \"device.memory_bytes\" is 0: it must be a number of at least 1 and at most 1e+18");
  EXPECT_THAT(MessageWith("/device/memory_bytes_per_second", -1), HasSubstr("at least 1 "));
  EXPECT_THAT(MessageWith("/device/launch_overhead_seconds", -1e-9), HasSubstr("at least 0"));
  EXPECT_THAT(MessageWith("/within_node/bytes_per_second", 1e-300), HasSubstr("at least 1 "));
  EXPECT_THAT(MessageWith("/source", ""), HasSubstr("\"source\" is \"\": it must be a text"));
  EXPECT_THAT(MessageWith("/within_node/bytes_per_second", 1e19), HasSubstr("at most 1e+18"));
}

TEST(ParsePlatformTest, OverheadsAreAPartOfTheLatency) {
  EXPECT_EQ(MessageWith("/within_node/send_overhead_seconds", 8e-7),
            "my.json: the overheads of \"within_node\" are 1.1e-06 s together and its latency is 1e-06 s: they are a "
            "part of it and cannot be more");
  EXPECT_THAT(MessageWith("/between_nodes/latency_seconds", 0), HasSubstr("\"between_nodes\""));
}

TEST(ParsePlatformTest, SaysWhereTheJsonIsBroken) {
  EXPECT_EQ(ParsePlatform("", "my.json").status().message(), "my.json is not JSON: something is wrong at byte 1 of 0");
  EXPECT_EQ(ParsePlatform("{\"name\": }", "my.json").status().message(),
            "my.json is not JSON: something is wrong at byte 10 of 10");
  EXPECT_FALSE(ParsePlatform("{\"name\": \"\xff\"}", "my.json").ok());
  EXPECT_FALSE(ParsePlatform("{} {}", "my.json").ok());
}

TEST(ParsePlatformTest, NestingWithoutEndIsRefused) {
  const std::string lists(200'000, '[');
  EXPECT_THAT(ParsePlatform(lists, "my.json").status().message(), HasSubstr("is not JSON"));
  EXPECT_THAT(ParsePlatform(lists + std::string(200'000, ']'), "my.json").status().message(), HasSubstr("is a list"));
}

TEST(FindPlatformTest, FindsWhatIsShipped) {
  EXPECT_EQ(ShippedPlatforms().size(), 7U);
  for (const ShippedPlatform& shipped : ShippedPlatforms()) {
    const Result<Platform> platform = FindPlatform(shipped.name);
    ASSERT_TRUE(platform.ok()) << platform.status().message();
    EXPECT_EQ(platform->name, shipped.name);
    EXPECT_TRUE(ValidateLinks(TopologyOf(*platform, platform->max_nodes > 1 ? 2 : 1)).ok()) << shipped.name;
  }
}

TEST(FindPlatformTest, ListsTheKnownOnes) {
  const Status status = FindPlatform("dgx-h200").status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "unknown platform 'dgx-h200': it must be one of dgx-h100, mi300x, rtx-4090, cpu-100g, cpu-10g, cpu-1g, "
            "cloud-regions, or the path of a .json file");
}

TEST(FindPlatformTest, ReadsFiles) {
  const std::filesystem::path path = std::filesystem::path(::testing::TempDir()) / "pando_platform_test.json";
  std::ofstream(path) << Valid().dump();
  const Result<Platform> platform = FindPlatform(path.string());
  ASSERT_TRUE(platform.ok()) << platform.status().message();
  EXPECT_EQ(platform->name, "pair");
  std::ofstream(path) << "[";
  EXPECT_THAT(FindPlatform(path.string()).status().message(), StartsWith(path.string()));
  std::filesystem::remove(path);
  const Status status = FindPlatform(path.string()).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr(path.string()));
}

}  // namespace
}  // namespace pando

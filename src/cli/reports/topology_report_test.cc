#include "src/cli/reports/topology_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "src/reduction/slot_ownership.h"

namespace pando::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr LinkModel kInside = {.latency_seconds = 1.5e-6, .bytes_per_second = 8e9};
constexpr LinkModel kBetween = {.latency_seconds = 40e-6,
                                .bytes_per_second = 0.125e9,
                                .send_overhead_seconds = 2e-6,
                                .receive_overhead_seconds = 3e-6};

CostModel CostsOf(std::vector<RankPlace> places, int64_t num_slots) {
  CostModel costs;
  costs.topology.places = std::move(places);
  costs.topology.links = {kInside, kInside, kInside, kBetween};
  costs.order = OrderRanks(costs.topology);
  costs.ownership = EqualRanges(num_slots, costs.num_ranks()).value();
  costs.merge_seconds_per_byte = 1e-10;
  return costs;
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// 8 nodes of 2 sockets of 4 processes, dealt round-robin, as mpirun may do.
CostModel EightByEight(int64_t num_slots = 64) {
  std::vector<RankPlace> places;
  for (int rank = 0; rank < 64; ++rank) places.push_back({.node = rank % 8, .socket = rank / 8 % 2, .process = rank});
  return CostsOf(std::move(places), num_slots);
}

TEST(DrawRanksTest, EverythingInOneProcess) {
  EXPECT_EQ(DrawRanks(CostsOf({{}, {}, {}}, 8)),
            "node 0\n"
            "  process 0\n"
            "    rank 0  slots 0 to 1  ##......\n"
            "    rank 1  slots 2 to 4  ..###...\n"
            "    rank 2  slots 5 to 7  .....###\n");
}

TEST(DrawRanksTest, OneRankPerProcessNeedsNoLinesForProcesses) {
  EXPECT_EQ(DrawRanks(CostsOf({{.process = 0}, {.process = 1}}, 2)),
            "node 0\n"
            "  rank 0  slot 0  #.\n"
            "  rank 1  slot 1  .#\n");
}

TEST(DrawRanksTest, ThreeUnevenNodesInTheOrderOfTheTree) {
  // Nodes of 1, 3 and 2 ranks: the one of 2 comes first.
  const CostModel costs = CostsOf({{.node = 0, .process = 0},
                                   {.node = 1, .process = 1},
                                   {.node = 2, .process = 2},
                                   {.node = 1, .process = 3},
                                   {.node = 2, .process = 4},
                                   {.node = 1, .process = 5}},
                                  16);
  EXPECT_EQ(DrawRanks(costs),
            "node 2\n"
            "  rank 2  slots 0 to 1    ##..............\n"
            "  rank 4  slots 2 to 4    ..###...........\n"
            "node 0\n"
            "  rank 0  slots 5 to 7    .....###........\n"
            "node 1\n"
            "  rank 1  slots 8 to 9    ........##......\n"
            "  rank 3  slots 10 to 12  ..........###...\n"
            "  rank 5  slots 13 to 15  .............###\n");
}

TEST(DrawRanksTest, NodesWithSocketsAreDrawnInLevels) {
  const std::vector<std::string> lines = Lines(DrawRanks(EightByEight()));
  ASSERT_THAT(lines, SizeIs(64 + 8 + 16));
  EXPECT_EQ(lines[0], "node 0");
  EXPECT_EQ(lines[1], "  socket 0");
  EXPECT_EQ(lines[2], "    rank  0  slot 0   #" + std::string(63, '.'));
  EXPECT_EQ(lines[3], "    rank 16  slot 1   .#" + std::string(62, '.'));
  EXPECT_EQ(lines[6], "  socket 1");
  EXPECT_EQ(lines[11], "node 1");
  EXPECT_EQ(lines.back(), "    rank 63  slot 63  " + std::string(63, '.') + "#");
}

TEST(DrawRanksTest, SocketsAndProcessesOfSeveralRanksNestInOneAnother) {
  EXPECT_EQ(
      DrawRanks(CostsOf({{.socket = 1, .process = 1}, {.socket = 0, .process = 0}, {.socket = 1, .process = 1}}, 4)),
      "node 0\n"
      "  socket 0\n"
      "    process 0\n"
      "      rank 1  slot 0        #...\n"
      "  socket 1\n"
      "    process 1\n"
      "      rank 0  slot 1        .#..\n"
      "      rank 2  slots 2 to 3  ..##\n");
}

TEST(DrawRanksTest, NumbersThatNodesShareBeginAnewOnEachNode) {
  EXPECT_EQ(DrawRanks(CostsOf({{.node = 0, .socket = 0}, {.node = 0, .socket = 1}, {.node = 1, .socket = 1}}, 4)),
            "node 0\n"
            "  socket 0\n"
            "    process 0\n"
            "      rank 0  slot 0        #...\n"
            "  socket 1\n"
            "    process 0\n"
            "      rank 1  slot 1        .#..\n"
            "node 1\n"
            "  socket 1\n"
            "    process 0\n"
            "      rank 2  slots 2 to 3  ..##\n");
}

TEST(DrawRanksTest, ManySlotsShareTheColumnsAndARankMayOwnNone) {
  CostModel costs = CostsOf({{}, {}, {}}, 1024);
  costs.ownership = {{0, 15}, {15, 15}, {15, 1024}};
  const std::vector<std::string> lines = Lines(DrawRanks(costs));
  EXPECT_EQ(lines[2], "    rank 0  slots 0 to 14     #" + std::string(63, '.'));
  EXPECT_EQ(lines[3], "    rank 1  no slots          " + std::string(64, '.'));
  EXPECT_EQ(lines[4], "    rank 2  slots 15 to 1023  " + std::string(64, '#'));
}

TEST(DrawRanksTest, OfAModelEachRankHasItsGroup) {
  GroupsReport groups = {.decoding = {.num_groups = 2}, .prompts = {.num_groups = 2}};
  const CostModel costs = CostsOf({{}, {}, {}, {}}, 4);
  EXPECT_EQ(DrawRanks(costs, &groups),
            "node 0\n"
            "  process 0\n"
            "    rank 0  slot 0  #...  group 0\n"
            "    rank 1  slot 1  .#..  group 0\n"
            "    rank 2  slot 2  ..#.  group 1\n"
            "    rank 3  slot 3  ...#  group 1\n");
  groups.decoding.num_groups = 1;
  groups.prompts.num_groups = 4;
  EXPECT_THAT(DrawRanks(costs, &groups), HasSubstr("    rank 3  slot 3  ...#  groups 0, 3\n"));
}

TEST(DrawRanksTest, GroupsAreOfNeighboursInTheTreeNotOfConsecutiveRanks) {
  const CostModel costs = CostsOf({{.node = 0}, {.node = 1}, {.node = 0}, {.node = 1}}, 4);
  const GroupsReport groups = {.decoding = {.num_groups = 2}, .prompts = {.num_groups = 2}};
  const std::string text = DrawRanks(costs, &groups);
  EXPECT_THAT(text, HasSubstr("    rank 2  slot 1  .#..  group 0\n"));
  EXPECT_THAT(text, HasSubstr("    rank 1  slot 2  ..#.  group 1\n"));
}

TopologyReport ReportOf(CostModel costs) {
  return {.transport = "mpi",
          .costs = std::move(costs),
          .num_heads = 32,
          .head_dim = 128,
          .batch = 2,
          .schedules = {{Schedule::kButterfly, 12.34e-6, 15e-6},
                        {Schedule::kDirect, 20e-6, 18.77e-6},
                        {.schedule = Schedule::kPaper, .can_be_chosen = false}},
          .chosen = Schedule::kButterfly};
}

TEST(TopologyReportTest, TextShowsLevelsSchedulesAndTheChoice) {
  TopologyReport report = ReportOf(EightByEight());
  report.costs.topology.cores_per_node = 4;
  const std::string text = RenderTopologyText(report);
  EXPECT_THAT(text, HasSubstr("64 ranks (mpi): 8 nodes, 16 sockets, 64 processes\n"));
  EXPECT_THAT(text, HasSubstr("those of a node share 4."));
  EXPECT_THAT(text, HasSubstr("| between nodes      |      40.00 |     0.12 |    2.00 |       3.00 |"));
  EXPECT_THAT(text, HasSubstr("| on the same socket |       1.50 |     8.00 |"));
  EXPECT_THAT(text, Not(HasSubstr("in the same process"))) << "no two ranks meet there";
  EXPECT_THAT(text, HasSubstr("One merge of 32 heads of 128, batch 2:"));
  EXPECT_THAT(text, HasSubstr("| butterfly |         12.3 |        15.0 | chosen     |"));
  EXPECT_THAT(text, HasSubstr("| direct    |         20.0 |        18.8 | candidate  |"));
  EXPECT_THAT(text, HasSubstr("| paper     |          0.0 |         0.0 | comparison |"));
  EXPECT_THAT(text, HasSubstr("The planner chooses butterfly.\n"));
  for (const std::string& line : Lines(text)) EXPECT_LE(line.size(), 120) << line;
}

TEST(TopologyReportTest, TextSaysInWhichGroupsAModelIsComputed) {
  TopologyReport report = ReportOf(EightByEight(1024));
  report.groups = GroupsReport{.model = "a\nmodel",
                               .batch = 2,
                               .context_tokens = 8192,
                               .decoding = {.num_groups = 8},
                               .prompts = {.num_groups = 64}};
  const std::string text = RenderTopologyText(report);
  EXPECT_THAT(text, HasSubstr("slots that each rank owns and its groups, in decoding and in prompts:\n"));
  EXPECT_THAT(text, HasSubstr("  groups 7, 63\n"));
  EXPECT_THAT(text, HasSubstr("a\\nmodel, 2 sequences with 8192 tokens:\n"
                              "  decodes in 8 groups of 8\n"
                              "  reads a prompt in a group for each rank, with all weights\n"));
  for (const std::string& line : Lines(text)) EXPECT_LE(line.size(), 120) << line;
  report.groups->decoding = report.groups->prompts;
  EXPECT_THAT(RenderTopologyText(report), HasSubstr("slots that each rank owns and its group:\n"));
}

TEST(TopologyReportTest, OneGroupIsSaidAndNotDrawn) {
  TopologyReport report = ReportOf(EightByEight());
  report.groups = GroupsReport{.model = "llama", .context_tokens = 100};
  const std::string text = RenderTopologyText(report);
  EXPECT_THAT(text, HasSubstr("slots that each rank owns:\n"));
  EXPECT_THAT(text, HasSubstr("llama, a sequence with 100 tokens:\n  decodes in one group\n"));
  EXPECT_THAT(text, Not(HasSubstr("group 0")));
  report.groups->fits = false;
  EXPECT_THAT(RenderTopologyText(report), HasSubstr("with 100 tokens, which do not fit these machines:\n"));
}

TEST(TopologyReportTest, OneRankHasNoLinksAndNoSchedules) {
  TopologyReport report = ReportOf(CostsOf({{}}, 64));
  report.schedules.clear();
  const std::string text = RenderTopologyText(report);
  EXPECT_THAT(text, HasSubstr("1 rank (mpi): 1 node, 1 socket, 1 process\n"));
  EXPECT_THAT(text, HasSubstr("nothing to send"));
  EXPECT_THAT(text, Not(HasSubstr("|")));
  const auto json = nlohmann::json::parse(RenderTopologyJson(report));
  EXPECT_TRUE(json["links"].empty());
  EXPECT_TRUE(json["schedules"].empty());
  EXPECT_TRUE(json["chosen"].is_null());
}

TEST(TopologyReportTest, JsonHasTheSameFigures) {
  const auto json = nlohmann::json::parse(RenderTopologyJson(ReportOf(EightByEight(128))));
  EXPECT_EQ(json["transport"], "mpi");
  EXPECT_EQ(json["slots"], 128);
  EXPECT_TRUE(json["cores_per_node"].is_null());
  ASSERT_THAT(json["ranks_in_tree_order"], SizeIs(64));
  EXPECT_EQ(json["ranks_in_tree_order"][1],
            nlohmann::json::parse(
                R"({"rank": 16, "node": 0, "socket": 0, "process": 16, "slots_begin": 2, "slots_end": 4})"));
  ASSERT_THAT(json["links"], SizeIs(3));
  EXPECT_EQ(json["links"][2]["link"], "between nodes");
  EXPECT_EQ(json["links"][2]["latency_us"], 40.0);
  EXPECT_EQ(json["merge_gb_per_s"], 10.0);
  EXPECT_EQ(json["schedules"][1]["schedule"], "direct");
  EXPECT_EQ(json["schedules"][1]["measured_us"], 18.8);
  EXPECT_EQ(json["chosen"], "butterfly");
  EXPECT_TRUE(json["groups"].is_null()) << "no model was named";
}

TEST(TopologyReportTest, JsonHasTheGroupsOfAModelAndOfEachRank) {
  TopologyReport report = ReportOf(EightByEight());
  report.groups = GroupsReport{
      .model = "llama", .context_tokens = 100, .decoding = {.num_groups = 1}, .prompts = {.num_groups = 16}};
  const auto json = nlohmann::json::parse(RenderTopologyJson(report));
  EXPECT_EQ(json["groups"],
            nlohmann::json::parse(R"({"model": "llama", "context": 100, "decoding": 1, "prompts": 16, "fits": true})"));
  EXPECT_EQ(json["ranks_in_tree_order"][63]["decoding_group"], 0);
  EXPECT_EQ(json["ranks_in_tree_order"][63]["prompts_group"], 15);
}

}  // namespace
}  // namespace pando::cli

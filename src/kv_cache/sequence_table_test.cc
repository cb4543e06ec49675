#include "src/kv_cache/sequence_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "src/kv_cache/testing/tokens.h"

namespace pando {
namespace {

using test_support::kFourSlots;
using ::testing::HasSubstr;

void Grow(SequenceTable& table, int64_t sequence, int64_t num_tokens) {
  for (int64_t layer = 0; layer < table.num_layers(); ++layer) table.fill(layer, sequence).num_tokens = num_tokens;
}

TEST(SequenceTableTest, AForkInheritsFullChunksUnderTheirOrigins) {
  SequenceTable table(2);
  const int64_t a = table.Add();
  Grow(table, a, 5 * 16 + 7);
  const int64_t b = table.Fork(kFourSlots, a);
  EXPECT_EQ(table.entry(b).OriginOf(4), 0);
  EXPECT_EQ(table.entry(b).OriginOf(5), 1);
  Grow(table, a, 9 * 16);
  Grow(table, b, 9 * 16);
  const int64_t c = table.Fork(kFourSlots, b);
  EXPECT_EQ(table.entry(c).inherited, (std::vector<InheritedRun>{{0, 5}, {1, 9}}));
  EXPECT_EQ(table.entry(c).OriginOf(9), 2);
  // Nothing new to inherit of b's own: no empty run.
  const int64_t d = table.Fork(kFourSlots, c);
  EXPECT_EQ(table.entry(d).inherited, (std::vector<InheritedRun>{{0, 5}, {1, 9}}));
  EXPECT_TRUE(SequenceTable::Validate(kFourSlots, 0, table.next_origin(), table.entries()).ok());
}

TEST(SequenceTableTest, ATableAsItWasGivesOutTheSmallestFreeIds) {
  SequenceTable table(1);
  for (int i = 0; i < 5; ++i) table.Add();
  for (const int64_t id : {0, 3, 1}) table.Remove(id);
  SequenceTable copy(1, table.next_origin(), table.entries());
  EXPECT_EQ(copy.Add(), 0);
  EXPECT_EQ(copy.Add(), 1);
  EXPECT_EQ(copy.Add(), 3);
  EXPECT_EQ(copy.Add(), 5);
  EXPECT_EQ(copy.entry(5).origin, 8);
}

TEST(SequenceTableTest, ValidateRefusesWhatCannotBe) {
  SequenceTable table(2);
  const int64_t a = table.Add();
  Grow(table, a, 40);
  table.Fork(kFourSlots, a);
  const auto message = [&](const std::function<void(std::vector<SequenceEntry>&)>& change, int64_t window = 0) {
    std::vector<SequenceEntry> entries = table.entries();
    change(entries);
    return SequenceTable::Validate(kFourSlots, window, table.next_origin(), entries).message();
  };
  EXPECT_EQ(message([](auto&) {}), "");
  EXPECT_THAT(message([](auto& e) { e[0].layers[1].num_tokens = -1; }), HasSubstr("sequence 0 has -1 tokens"));
  EXPECT_THAT(message([](auto& e) { e[0].layers[1].num_tokens = INT64_MAX; }), HasSubstr("tokens"));
  EXPECT_THAT(message([](auto& e) { e[0].layers[0].first_chunk = 1; }), HasSubstr("released 1 chunks"));
  EXPECT_EQ(message([](auto& e) { e[0].layers[0].first_chunk = 2; }, 5), "");
  EXPECT_THAT(message([](auto& e) { e[0].layers[0].first_chunk = 3; }, 5), HasSubstr("released 3 chunks"));
  EXPECT_THAT(message([](auto& e) { e[0].origin = 2; }), HasSubstr("origin 2 of 2"));
  EXPECT_THAT(message([](auto& e) { e[0].origin = 1; }), HasSubstr("origin 1 of another"));
  EXPECT_THAT(message([](auto& e) { e[1].inherited[0].origin = 1; }), HasSubstr("inherits chunks 0 to 2 of origin 1"));
  EXPECT_THAT(message([](auto& e) { e[1].inherited[0].end_chunk = 0; }), HasSubstr("inherits chunks 0 to 0"));
  EXPECT_THAT(message([](auto& e) { e[1].inherited[0].end_chunk = 3; }), HasSubstr("not all full"));
  EXPECT_THAT(message([](auto& e) { e[0].layers[0].num_tokens = 31; }), HasSubstr("its parent has not filled"));
}

}  // namespace
}  // namespace pando

// FoldChunk against its reference, to the bit, on every instruction set this machine has.
#include "src/kernels/chunk_fold.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <ostream>
#include <string>
#include <vector>

#include "src/base/aligned_buffer.h"
#include "src/base/random.h"
#include "src/base/testing/bits.h"
#include "src/kernels/reference/attention_reference.h"
#include "src/kernels/testing/kernel_cases.h"

namespace pando {
namespace {

using ::pando::test_support::OnEveryTarget;
using ::pando::test_support::SameBits;

constexpr KvType kTypes[] = {KvType::kF32, KvType::kF16, KvType::kBF16, KvType::kQ8_0};

// One chunk and a block of queries, filled from a seed.
struct ChunkProblem {
  KvPageLayout layout;
  size_t rows = 1;
  ScoreRule rule;
  bool equal_ranges = true;
  uint64_t seed = 1;
};

std::ostream& operator<<(std::ostream& out, const ChunkProblem& p) {
  return out << KvTypeName(p.layout.k_type) << "/" << KvTypeName(p.layout.v_type) << " head_dim " << p.layout.head_dim
             << " chunk " << p.layout.chunk_tokens << " rows " << p.rows << " softcap " << p.rule.softcap
             << (p.equal_ranges ? " equal" : " unequal") << " ranges, seed " << p.seed;
}

class Chunk {
 public:
  explicit Chunk(const ChunkProblem& problem) : problem_(problem), random_(problem.seed) {
    const size_t head_dim = problem.layout.head_dim;
    const size_t tokens = problem.layout.chunk_tokens;
    page_ = AlignedBuffer::Allocate(problem.layout.head_bytes(), "a page").value();
    k_ = Normals(tokens * head_dim);
    v_ = Normals(tokens * head_dim);
    Store();
    const std::vector<float> queries = Normals(problem.rows * head_dim);
    packed_.resize(queries.size());
    PackQueries(problem.layout.k_type, queries.data(), head_dim, problem.rows, head_dim, packed_.data());
    MakeRanges();
    // States that have seen tokens already, above and below what this chunk will bring, and one that has not.
    states_ = Normals(AttentionStateSpan::NumFloats(problem.rows, problem.layout.padded_dim()));
    AttentionStateSpan states = Span(states_);
    states.max(0) = -std::numeric_limits<float>::infinity();
    states.sum(0) = 0;
    std::fill_n(states.acc(0), states.head_dim, 0.0f);
  }

  std::vector<float>& k() { return k_; }
  std::vector<float>& v() { return v_; }
  std::vector<TokenRange>& ranges() { return ranges_; }
  void Store() {
    const KvPageLayout& layout = problem_.layout;
    WriteTokens(layout, page_.data(), 0, layout.chunk_tokens, k_.data(), v_.data(), layout.head_dim);
  }

  std::vector<float> Fold(void (*function)(const ChunkFold&)) {
    std::vector<float> states = states_;
    function({&problem_.layout, page_.data(), nullptr, problem_.rule, packed_.data(), ranges_.data(), Span(states), 0,
              problem_.rows});
    return states;
  }

 private:
  std::vector<float> Normals(size_t count) {
    std::vector<float> values(count);
    for (float& value : values) value = random_.Normal();
    return values;
  }

  AttentionStateSpan Span(std::vector<float>& floats) const {
    return {floats.data(), problem_.rows, problem_.layout.padded_dim()};
  }

  void MakeRanges() {
    const size_t tokens = problem_.layout.chunk_tokens;
    const auto range = [&] {
      const uint32_t begin = static_cast<uint32_t>(random_.Below(tokens));
      return TokenRange{begin, static_cast<uint32_t>(begin + random_.Below(tokens + 1 - begin))};
    };
    ranges_.assign(problem_.rows, problem_.seed % 2 == 0 ? TokenRange{0, static_cast<uint32_t>(tokens)} : range());
    if (problem_.equal_ranges) return;
    for (TokenRange& own : ranges_) own = range();
  }

  ChunkProblem problem_;
  Random random_;
  AlignedBuffer page_;
  std::vector<float> k_, v_, packed_, states_;
  std::vector<TokenRange> ranges_;
};

void ExpectFoldsAsReference(const ChunkProblem& problem) {
  Chunk chunk(problem);
  const std::vector<float> expected = chunk.Fold(reference::FoldChunkInOrder);
  OnEveryTarget([&](const std::string& target) {
    EXPECT_TRUE(SameBits(chunk.Fold(FoldChunk), expected)) << target << " " << problem;
  });
}

TEST(ChunkFoldTest, SameBitsAsReferenceForEveryTypeAndHeadDim) {
  for (const KvType k_type : kTypes) {
    for (const KvType v_type : kTypes) {
      for (const int64_t head_dim : {8, 24, 40, 64, 80, 96, 128, 256}) {
        const KvPageLayout layout = KvPageLayout::Create(k_type, v_type, head_dim, 64).value();
        ExpectFoldsAsReference({.layout = layout, .rows = 4, .rule = {0.1f, 0}, .seed = 2});
      }
    }
  }
}

TEST(ChunkFoldTest, SameBitsAsReferenceForEveryNumberOfRows) {
  for (const KvType type : kTypes) {
    for (size_t rows = 1; rows <= 14; ++rows) {
      for (const bool equal : {true, false}) {
        const KvPageLayout layout = KvPageLayout::Create(type, type, 80, 48).value();
        ExpectFoldsAsReference(
            {.layout = layout, .rows = rows, .rule = {0.1f, 0}, .equal_ranges = equal, .seed = rows});
      }
    }
  }
}

RC_GTEST_PROP(ChunkFoldTest, SameBitsAsReferenceForAnyShape, ()) {
  ChunkProblem problem;
  const KvType k_type = kTypes[*rc::gen::inRange(0, 4)];
  const KvType v_type = kTypes[*rc::gen::inRange(0, 4)];
  problem.layout =
      KvPageLayout::Create(k_type, v_type, 8 * *rc::gen::inRange(1, 20), 16 * *rc::gen::inRange(1, 17)).value();
  problem.rows = *rc::gen::inRange<size_t>(1, 20);
  problem.rule = {*rc::gen::element(0.01f, 0.125f, 1.0f, 30.0f), *rc::gen::element(0.0f, 0.0f, 5.0f, 50.0f)};
  problem.equal_ranges = *rc::gen::arbitrary<bool>();
  problem.seed = *rc::gen::inRange<uint64_t>(1, 1u << 30);
  ExpectFoldsAsReference(problem);
}

TEST(ChunkFoldTest, AnEmptyRangeLeavesTheStateUnchanged) {
  for (const KvType type : kTypes) {
    const ChunkProblem problem{
        .layout = KvPageLayout::Create(type, type, 64, 64).value(), .rows = 5, .rule = {1.0f, 0}};
    Chunk chunk(problem);
    const std::vector<float> before = chunk.Fold([](const ChunkFold&) {});
    for (const TokenRange empty : {TokenRange{0, 0}, TokenRange{64, 64}, TokenRange{7, 3}}) {
      std::fill(chunk.ranges().begin(), chunk.ranges().end(), empty);
      OnEveryTarget([&](const std::string& target) { EXPECT_TRUE(SameBits(chunk.Fold(FoldChunk), before)) << target; });
    }
  }
}

// What lies outside a row's range takes no part, whatever it is.
TEST(ChunkFoldTest, TokensOutsideTheRangeDoNotShow) {
  for (const KvType type : kTypes) {
    for (const bool equal : {true, false}) {
      const ChunkProblem problem{
          .layout = KvPageLayout::Create(type, type, 64, 64).value(), .rows = 6, .equal_ranges = equal, .seed = 3};
      Chunk chunk(problem);
      for (TokenRange& range : chunk.ranges()) range.end = std::min(range.end, 40u);
      const std::vector<float> expected = chunk.Fold(reference::FoldChunkInOrder);
      std::fill(chunk.k().begin() + 40 * 64, chunk.k().end(), std::numeric_limits<float>::quiet_NaN());
      std::fill(chunk.v().begin() + 40 * 64, chunk.v().end(), std::numeric_limits<float>::infinity());
      chunk.Store();
      OnEveryTarget(
          [&](const std::string& target) { EXPECT_TRUE(SameBits(chunk.Fold(FoldChunk), expected)) << target; });
    }
  }
}

// Every accumulator and the sum become NaN: the head's result cannot be mistaken for a good one.
TEST(ChunkFoldTest, NanAndInfinityInKeysShow) {
  for (const KvType type : kTypes) {
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      const ChunkProblem problem{.layout = KvPageLayout::Create(type, type, 64, 64).value(), .rows = 4, .seed = 2};
      Chunk chunk(problem);
      // Both signs, so that whatever the query's sign one of the scores is NaN or +inf.
      chunk.k()[10 * 64 + 5] = bad;
      chunk.k()[11 * 64 + 5] = -bad;
      chunk.Store();
      OnEveryTarget([&](const std::string& target) {
        std::vector<float> floats = chunk.Fold(FoldChunk);
        const AttentionStateSpan states{floats.data(), 4, 64};
        for (size_t row = 0; row < 4; ++row) {
          EXPECT_TRUE(std::isnan(states.sum(row))) << target;
          EXPECT_TRUE(std::isnan(states.max(row))) << target;
          for (size_t dim = 0; dim < 64; ++dim) EXPECT_TRUE(std::isnan(states.acc(row)[dim])) << target;
        }
      });
    }
  }
}

TEST(ChunkFoldTest, InfinityInValuesShows) {
  for (const KvType type : kTypes) {
    const ChunkProblem problem{.layout = KvPageLayout::Create(type, type, 64, 64).value(), .rows = 4, .seed = 2};
    Chunk chunk(problem);
    chunk.v()[10 * 64 + 5] = std::numeric_limits<float>::infinity();
    chunk.Store();
    OnEveryTarget([&](const std::string& target) {
      std::vector<float> floats = chunk.Fold(FoldChunk);
      const AttentionStateSpan states{floats.data(), 4, 64};
      for (size_t row = 0; row < 4; ++row) EXPECT_FALSE(std::isfinite(states.acc(row)[5])) << target;
    });
  }
}

}  // namespace
}  // namespace pando

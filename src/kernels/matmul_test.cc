// MultiplyRows against its reference, to the bit, on every instruction set this machine has; and against float64.
#include "src/kernels/matmul.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "src/base/aligned_buffer.h"
#include "src/base/random.h"
#include "src/base/testing/allocation_counter.h"
#include "src/base/testing/bits.h"
#include "src/kernels/random_weights.h"
#include "src/kernels/reference/matmul_reference.h"
#include "src/kernels/testing/kernel_cases.h"
#include "src/kernels/weight_groups.h"

namespace pando {
namespace {

using ::pando::test_support::kInfinity;
using ::pando::test_support::kNan;
using ::pando::test_support::OnEveryTarget;
using ::pando::test_support::SameBits;

// A matrix and some tokens. The matrix lies at an odd address, and ends where its allocation does.
struct MatmulProblem {
  MatmulProblem(WeightType type, size_t rows, size_t columns, size_t tokens, uint64_t seed)
      : bytes(RandomWeights(type, rows, columns, seed)), x_floats(tokens * columns), num_tokens(tokens) {
    bytes.insert(bytes.begin(), std::byte{0});
    w = {type, rows, columns, bytes.data() + 1};
    Random random(seed + 1);
    for (float& value : x_floats) value = random.Normal();
    SetTokens();
  }

  void SetTokens() {
    EXPECT_TRUE(x.Grow(num_tokens, w.columns).ok());
    x.Set(FormOf(w.type), x_floats.data(), num_tokens, w.columns);
    EXPECT_TRUE(scratch.Grow(MultiplyScratchBytes(w.columns), "a test").ok());
  }

  std::vector<float> Expected() const {
    std::vector<float> out(num_tokens * w.rows);
    reference::MultiplyRows(w, 0, w.rows, x, out.data(), w.rows);
    return out;
  }

  // In calls of at most `step` rows.
  std::vector<float> Product(size_t step) const {
    std::vector<float> out(num_tokens * w.rows, kNan);
    for (size_t row = 0; row < w.rows; row += step) {
      MultiplyRows(w, row, std::min(step, w.rows - row), x, out.data() + row, w.rows, scratch.data());
    }
    return out;
  }

  std::vector<std::byte> bytes;
  WeightMatrix w;
  std::vector<float> x_floats;
  size_t num_tokens;
  Activations x;
  AlignedBuffer scratch;
};

std::string Describe(const MatmulProblem& p) {
  return std::string(InfoOf(p.w.type).name) + " " + std::to_string(p.w.rows) + " x " + std::to_string(p.w.columns) +
         ", " + std::to_string(p.num_tokens) + " tokens";
}

void ExpectMultipliesAsReference(const MatmulProblem& problem, size_t step = 1000) {
  const std::vector<float> expected = problem.Expected();
  OnEveryTarget([&](const std::string& target) {
    EXPECT_TRUE(SameBits(problem.Product(step), expected)) << target << " " << Describe(problem) << " by " << step;
  });
}

size_t ColumnsFor(WeightType type, size_t blocks) { return blocks * std::max<size_t>(32, InfoOf(type).block_values); }

TEST(MatmulTest, SameBitsAsReferenceForEveryTypeAndNumberOfTokens) {
  for (const WeightType type : AllWeightTypes()) {
    for (const size_t tokens : {1, 2, 3, 4, 5, 6, 7, 64, 65}) {
      ExpectMultipliesAsReference({type, 19, ColumnsFor(type, 3), tokens, 10 + tokens});
    }
  }
}

TEST(MatmulTest, SameBitsAsReferenceForEveryTypeAndNumberOfRows) {
  for (const WeightType type : AllWeightTypes()) {
    for (const size_t rows : {0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 33}) {
      for (const size_t tokens : {1, 2, 5})
        ExpectMultipliesAsReference({type, rows, ColumnsFor(type, 1), tokens, 20 + rows});
    }
  }
}

TEST(MatmulTest, SameBitsForAnySplitOfTheRows) {
  for (const WeightType type : AllWeightTypes()) {
    for (const size_t tokens : {1, 3, 9}) {
      const MatmulProblem problem(type, 37, ColumnsFor(type, 2), tokens, 30 + tokens);
      for (const size_t step : {1, 3, 8, 13, 16, 36}) ExpectMultipliesAsReference(problem, step);
    }
  }
}

// A token alone has the bits that it has among others.
TEST(MatmulTest, SameBitsForAnySplitOfTheTokens) {
  for (const WeightType type : AllWeightTypes()) {
    const MatmulProblem all(type, 18, ColumnsFor(type, 2), 11, 40);
    const std::vector<float> expected = all.Product(18);
    for (size_t token = 0; token < 11; ++token) {
      MatmulProblem one(type, 18, all.w.columns, 1, 40);
      one.x_floats.assign(all.x_floats.begin() + token * all.w.columns,
                          all.x_floats.begin() + (token + 1) * all.w.columns);
      one.SetTokens();
      EXPECT_TRUE(SameBits(one.Product(18), std::span(expected).subspan(token * 18, 18))) << Describe(all);
    }
  }
}

TEST(MatmulTest, FloatColumnsOfAnyNumber) {
  for (const WeightType type : {WeightType::kF32, WeightType::kF16, WeightType::kBF16}) {
    for (const size_t columns : {0, 1, 7, 15, 16, 17, 31, 33, 100, 255, 257}) {
      for (const size_t tokens : {1, 4, 7}) ExpectMultipliesAsReference({type, 5, columns, tokens, 50 + columns});
    }
  }
}

// Segments of all kinds: one, several, a last one that is shorter, numbers that are no power of two.
TEST(MatmulTest, SameBitsAsReferenceForAnyNumberOfSegments) {
  for (const WeightType type : AllWeightTypes()) {
    for (const size_t columns : {32, 224, 256, 288, 512, 576, 768, 1280, 1536, 1792, 2240, 2816}) {
      if (columns % InfoOf(type).block_values != 0) continue;
      for (const size_t tokens : {1, 2, 3, 6}) ExpectMultipliesAsReference({type, 17, columns, tokens, 55 + columns});
    }
  }
  for (const WeightType type : {WeightType::kF32, WeightType::kF16, WeightType::kBF16}) {
    for (const size_t columns : {255, 257, 271, 273, 500, 1025}) {
      for (const size_t tokens : {1, 2, 7}) ExpectMultipliesAsReference({type, 5, columns, tokens, 56 + columns});
    }
  }
}

// The columns of one segment alone, in the order that src/kernels/matmul.h gives.
TEST(MatmulTest, ASegmentStartsFromZeroAndSegmentsAreATree) {
  const MatmulProblem problem(WeightType::kF32, 1, 3 * kSegmentColumns, 1, 57);
  std::vector<float> leaves;
  for (size_t i = 0; i < 3; ++i) {
    MatmulProblem one(WeightType::kF32, 1, kSegmentColumns, 1, 57);
    const size_t first = i * kSegmentColumns;
    one.w.data = problem.w.data + first * sizeof(float);
    std::copy_n(problem.x_floats.begin() + static_cast<std::ptrdiff_t>(first), kSegmentColumns, one.x_floats.begin());
    one.SetTokens();
    leaves.push_back(one.Product(1)[0]);
  }
  EXPECT_TRUE(SameBits(problem.Product(1)[0], (leaves[0] + leaves[1]) + leaves[2]));
}

// The columns of a range of segments of every token of `problem`.
Activations TokensOfRange(const MatmulProblem& problem, SegmentRange range) {
  const size_t columns = NumColumns(problem.w.columns, range);
  Activations x;
  EXPECT_TRUE(x.Grow(problem.num_tokens, columns).ok());
  x.Reset(FormOf(problem.w.type), problem.num_tokens, columns);
  x.SetTokens(0, problem.num_tokens, problem.x_floats.data() + range.begin * kSegmentColumns, problem.w.columns);
  return x;
}

// The forests of all parts, one after the other: [nodes][tokens][rows].
std::vector<float> ForestsOfParts(const MatmulProblem& problem, std::span<const SegmentRange> parts) {
  const size_t node_floats = problem.num_tokens * problem.w.rows;
  std::vector<float> nodes;
  for (const SegmentRange& part : parts) {
    const size_t first = nodes.size();
    nodes.resize(first + SegmentForest(NumSegments(problem.w.columns), part).size() * node_floats, kNan);
    const Activations x = TokensOfRange(problem, part);
    // Where they lie and copied, by turns.
    WeightColumns columns = ColumnsOf(problem.w, part);
    std::vector<std::byte> copy(problem.w.rows * columns.row_bytes());
    if (first % 2 == 0) columns = CopyColumns(problem.w, part, copy.data());
    for (size_t row = 0; row < problem.w.rows; row += 7) {  // in calls of seven rows
      MultiplyColumns(columns, row, std::min<size_t>(7, problem.w.rows - row), x, nodes.data() + first + row,
                      problem.w.rows, node_floats, problem.scratch.data());
    }
  }
  return nodes;
}

std::vector<float> FoldParts(const MatmulProblem& problem, std::span<const SegmentRange> parts) {
  const size_t num_segments = NumSegments(problem.w.columns);
  std::vector<SegmentRange> node_ranges;
  for (const SegmentRange& part : parts) {
    const SegmentForest forest(num_segments, part);
    node_ranges.insert(node_ranges.end(), forest.nodes().begin(), forest.nodes().end());
  }
  std::vector<float> nodes = ForestsOfParts(problem, parts);
  const size_t node_floats = problem.num_tokens * problem.w.rows;
  FoldColumnParts(MergesOf(num_segments, node_ranges), node_floats, nodes.data(), node_floats);
  nodes.resize(node_floats);
  return nodes;
}

TEST(MatmulTest, SameBitsForAnySplitOfTheColumns) {
  for (const WeightType type : AllWeightTypes()) {
    for (const size_t tokens : {1, 3, 6}) {
      // Five or six segments, the last one shorter where the type's blocks allow it.
      const size_t columns = InfoOf(type).block_values == 256 ? 1280 : IsQuantized(type) ? 1312 : 1301;
      const MatmulProblem problem(type, 19, columns, tokens, 58);
      const std::vector<float> expected = problem.Expected();
      OnEveryTarget([&](const std::string& target) {
        for (const size_t num_parts : {1, 2, 3, 4, 5, 8}) {
          std::vector<SegmentRange> parts;
          for (size_t i = 0; i < num_parts; ++i) {
            parts.push_back(SegmentsOfPart(NumSegments(columns), i, num_parts));
          }
          EXPECT_TRUE(SameBits(FoldParts(problem, parts), expected))
              << target << " " << Describe(problem) << " in " << num_parts;
        }
      });
    }
  }
}

RC_GTEST_PROP(MatmulTest, ForestsAreTheReferencesForAnyRange, ()) {
  const WeightType type = AllWeightTypes()[*rc::gen::inRange<size_t>(0, AllWeightTypes().size())];
  const size_t columns = ColumnsFor(type, *rc::gen::inRange<size_t>(1, InfoOf(type).block_values == 256 ? 9 : 70));
  const MatmulProblem problem(type, *rc::gen::inRange<size_t>(1, 20), columns, *rc::gen::inRange<size_t>(1, 9), 59);
  const size_t begin = *rc::gen::inRange<size_t>(0, NumSegments(columns) + 1);
  const SegmentRange range = {begin, *rc::gen::inRange<size_t>(begin, NumSegments(columns) + 1)};
  const size_t node_floats = problem.num_tokens * problem.w.rows;
  std::vector<float> expected(SegmentForest(NumSegments(columns), range).size() * node_floats);
  reference::MultiplyColumns(problem.w, 0, problem.w.rows, range, TokensOfRange(problem, range), expected.data(),
                             problem.w.rows, node_floats);
  OnEveryTarget([&](const std::string& target) {
    EXPECT_TRUE(SameBits(ForestsOfParts(problem, {&range, 1}), expected))
        << target << " " << Describe(problem) << " [" << range.begin << ", " << range.end << ")";
  });
}

TEST(MatmulTest, NoTokensAndNoColumns) {
  for (const WeightType type : AllWeightTypes()) {
    ExpectMultipliesAsReference({type, 9, ColumnsFor(type, 1), 0, 60});
    ExpectMultipliesAsReference({type, 9, 0, 6, 61});
  }
}

RC_GTEST_PROP(MatmulTest, SameBitsAsReferenceForAnyShape, ()) {
  const WeightType type = AllWeightTypes()[*rc::gen::inRange<size_t>(0, AllWeightTypes().size())];
  const size_t columns = ColumnsFor(type, *rc::gen::inRange<size_t>(1, 6));
  const MatmulProblem problem(type, *rc::gen::inRange<size_t>(1, 50), columns, *rc::gen::inRange<size_t>(1, 20),
                              *rc::gen::inRange<uint64_t>(1, 1u << 30));
  ExpectMultipliesAsReference(problem, *rc::gen::inRange<size_t>(1, 50));
}

// The largest products there are: no sum of them may saturate or wrap.
TEST(MatmulTest, SameBitsAsReferenceForExtremeValues) {
  for (const WeightType type : AllWeightTypes()) {
    if (!IsQuantized(type)) continue;
    for (const unsigned fill : {0x00u, 0x7fu, 0x80u, 0xffu}) {
      for (const size_t period : {0, 1, 2, 4, 16}) {  // columns after which the sign of x changes; 0: never
        for (const float sign : {1.0f, -1.0f}) {
          MatmulProblem problem(type, 17, ColumnsFor(type, 2), 5, 70);
          std::fill(problem.bytes.begin(), problem.bytes.end(), static_cast<std::byte>(fill));
          for (size_t at = 1; at < problem.bytes.size(); at += InfoOf(type).block_bytes) {
            for (const size_t offset : HalfOffsets(type)) {
              problem.bytes[at + offset] = std::byte{0};
              problem.bytes[at + offset + 1] = std::byte{0x3c};  // 1.0
            }
          }
          for (size_t i = 0; i < problem.x_floats.size(); ++i) {
            problem.x_floats[i] = period != 0 && i / period % 2 == 1 ? -sign : sign;
          }
          problem.SetTokens();
          ASSERT_EQ(std::abs(problem.x.bytes(0).q[0]), 127);
          ExpectMultipliesAsReference(problem);
          problem.num_tokens = 1;
          problem.SetTokens();
          ExpectMultipliesAsReference(problem);
        }
      }
    }
  }
}

TEST(MatmulTest, NanAndInfinityInATokenAreInAllItsProductsAndNoOthers) {
  for (const WeightType type : AllWeightTypes()) {
    for (const size_t tokens : {1, 3, 6}) {
      for (const float bad : {kNan, kInfinity, -kInfinity}) {
        MatmulProblem problem(type, 9, ColumnsFor(type, 2), tokens, 80);
        problem.x_floats[(tokens - 1) * problem.w.columns + 33] = bad;
        problem.SetTokens();
        ExpectMultipliesAsReference(problem);
        const std::vector<float> out = problem.Product(9);
        for (size_t i = 0; i < out.size(); ++i)
          EXPECT_EQ(std::isfinite(out[i]), i / 9 + 1 < tokens) << Describe(problem);
      }
    }
  }
}

TEST(MatmulTest, NanAndInfinityInARowAreInAllItsProductsAndNoOthers) {
  for (const WeightType type : AllWeightTypes()) {
    for (const size_t tokens : {1, 3, 6}) {
      for (const unsigned bad : {0x7c00u, 0xfc00u, 0x7e00u}) {  // as float16: infinities and NaN
        MatmulProblem problem(type, 11, ColumnsFor(type, 2), tokens, 90);
        const WeightTypeInfo& info = InfoOf(type);
        const size_t row = 7;
        for (const size_t offset : HalfOffsets(type)) {
          std::byte* at = problem.bytes.data() + 1 + row * problem.w.row_bytes() + offset;
          const bool is_half = type == WeightType::kF16 || IsQuantized(type);
          const uint16_t bits = static_cast<uint16_t>(is_half ? bad : bad | 0x7f80u);
          if (type == WeightType::kF32) at += 2;
          std::memcpy(at, &bits, sizeof(bits));
        }
        ExpectMultipliesAsReference(problem);
        const std::vector<float> out = problem.Product(11);
        for (size_t i = 0; i < out.size(); ++i) {
          // An infinite scale times an integer dot product of 0 is NaN, so it shows in any case.
          EXPECT_EQ(std::isfinite(out[i]), i % 11 != row) << Describe(problem) << " " << info.name << " " << i;
        }
      }
    }
  }
}

// A sum in float64, the sum of its terms' magnitudes, and how many terms a chain of it has.
struct Exact {
  double sum = 0;
  double magnitude = 0;
  size_t terms = 0;

  void Add(double term) {
    sum += term;
    magnitude += std::abs(term);
  }
};

// Of what is stored: sum over the groups of s d dot + minimum * scaled sum.
Exact ExactBytes(const MatmulProblem& problem, size_t row, size_t token) {
  const size_t group_values = InfoOf(problem.w.type).group_values;
  const ByteToken x = problem.x.bytes(token);
  const float* scaled_sums = group_values == kGroupBlock ? x.scaled_sums : x.scaled_half_sums;
  Exact exact{.terms = problem.w.columns / group_values};
  for (size_t column = 0; column < problem.w.columns; column += group_values) {
    const WeightGroups groups = ReadGroups(problem.w.type, problem.w.row(row), column / kGroupBlock);
    const size_t group = column % kGroupBlock / group_values;
    double dot = 0;
    for (size_t i = 0; i < group_values; ++i) dot += groups.q[column % kGroupBlock + i] * x.q[column + i];
    const double d = x.scales[column / kGroupBlock];
    exact.Add(double{groups.scale[group]} * d * dot);
    exact.Add(double{groups.minimum[group]} * double{scaled_sums[column / group_values]});
  }
  return exact;
}

// Of the weights and the tokens as they were before they became bytes.
Exact ExactFloats(const MatmulProblem& problem, size_t row, size_t token) {
  const size_t columns = problem.w.columns;
  std::vector<float> weights(columns);
  DequantizeRow(problem.w, row, weights.data());
  Exact exact{.terms = columns / 16 + 4};
  for (size_t i = 0; i < columns; ++i) exact.Add(double{weights[i]} * double{problem.x_floats[token * columns + i]});
  return exact;
}

// A product's term is rounded once before it is added (s * d), a chain of n terms n times, and the two chains' sum
// once: n + 2 roundings of 2^-24 each of at most the sum of magnitudes.
TEST(MatmulTest, WithinTheBoundOfFloat64) {
  for (const WeightType type : AllWeightTypes()) {
    const MatmulProblem problem(type, 24, ColumnsFor(type, 4), 6, 100);
    const std::vector<float> out = problem.Product(24);
    for (size_t row = 0; row < 24; ++row) {
      for (size_t token = 0; token < 6; ++token) {
        const Exact exact = IsQuantized(type) ? ExactBytes(problem, row, token) : ExactFloats(problem, row, token);
        const double bound = exact.magnitude * static_cast<double>(exact.terms + 2) * 0x1p-24;
        EXPECT_NEAR(out[token * 24 + row], exact.sum, bound) << Describe(problem);
      }
    }
  }
}

// Rounding x to bytes moves a product by at most half a step of x per weight; rounding the step and the scaled sums to
// 11 bits, by at most 2^-11 of each of the two terms of a group.
TEST(MatmulTest, WithinTheRoundingOfXOfTheExactProduct) {
  for (const WeightType type : AllWeightTypes()) {
    if (!IsQuantized(type)) continue;
    const MatmulProblem problem(type, 24, ColumnsFor(type, 4), 6, 120);
    const size_t columns = problem.w.columns;
    std::vector<float> weights(columns);
    for (size_t row = 0; row < 24; ++row) {
      DequantizeRow(problem.w, row, weights.data());
      for (size_t token = 0; token < 6; ++token) {
        double rounding = 0;
        for (size_t i = 0; i < columns; ++i) {
          rounding += std::abs(double{weights[i]}) * double{problem.x.bytes(token).scales[i / kActivationBlock]} / 2;
        }
        const Exact floats = ExactFloats(problem, row, token);
        const Exact bytes = ExactBytes(problem, row, token);
        const double difference = std::abs(bytes.sum - floats.sum);
        EXPECT_LE(difference, rounding * 1.001 + bytes.magnitude * 0x1p-11 + floats.magnitude * 1e-6)
            << Describe(problem);
        EXPECT_GT(difference, 0) << Describe(problem);
      }
    }
  }
}

TEST(MatmulTest, MultiplyingAllocatesNothing) {
  for (const WeightType type : AllWeightTypes()) {
    for (const size_t tokens : {1, 6}) {
      const MatmulProblem problem(type, 20, ColumnsFor(type, 2), tokens, 110);
      std::vector<float> out(tokens * 20);
      OnEveryTarget([&](const std::string&) {
        const size_t before = test_support::NumAllocations();
        MultiplyRows(problem.w, 0, 20, problem.x, out.data(), 20, problem.scratch.data());
        EXPECT_EQ(test_support::NumAllocations(), before);
      });
    }
  }
}

}  // namespace
}  // namespace pando

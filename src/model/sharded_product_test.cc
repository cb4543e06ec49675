#include "src/model/sharded_product.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "pando/communicator.h"
#include "src/base/random.h"
#include "src/base/testing/bits.h"
#include "src/kernels/random_weights.h"
#include "src/kernels/vector_ops.h"
#include "src/ranks/rank_access.h"

namespace pando {
namespace {

using test_support::SameBits;

constexpr size_t kColumns = 64;

// A matrix that owns its bytes.
struct Matrix {
  Matrix(WeightType type, size_t rows, uint64_t seed) : bytes(RandomWeights(type, rows, kColumns, seed)) {
    weights = {.type = type, .rows = rows, .columns = kColumns, .data = bytes.data()};
  }
  std::vector<std::byte> bytes;
  WeightMatrix weights;
};

std::vector<float> RandomTokens(size_t count, uint64_t seed) {
  Random random(seed);
  std::vector<float> x(count * kColumns);
  for (float& value : x) value = random.Normal();
  return x;
}

// [tokens][rows of all parts], each part by one call of the kernel.
std::vector<float> Plain(std::span<const WeightMatrix> parts, std::span<const float> x, size_t num_tokens) {
  size_t num_rows = 0;
  for (const WeightMatrix& part : parts) num_rows += part.rows;
  std::vector<float> out(num_tokens * num_rows);
  const size_t columns = parts.front().columns;
  AlignedBuffer scratch;
  EXPECT_TRUE(scratch.Grow(MultiplyScratchBytes(columns), "scratch").ok());
  Activations input;
  EXPECT_TRUE(input.Grow(num_tokens, columns).ok());
  size_t first = 0;
  for (const WeightMatrix& part : parts) {
    input.Set(FormOf(part.type), x.data(), num_tokens, columns);
    MultiplyRows(part, 0, part.rows, input, out.data() + first, num_rows, scratch.data());
    first += part.rows;
  }
  return out;
}

struct Case {
  int64_t num_ranks;
  size_t num_threads;
  size_t num_tokens;
};

// Ranks with no rows, tokens of one and of many.
std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const int64_t num_ranks : {1, 2, 3, 5, 8}) {
    for (const size_t num_threads : {1, 2, 5}) {
      for (const size_t num_tokens : {1, 2, 19}) cases.push_back({num_ranks, num_threads, num_tokens});
    }
  }
  return cases;
}

// Calls function(product, is_front) on each rank.
template <typename Function>
void RunCase(const Case& c, size_t max_rows, size_t max_columns, const Function& function) {
  ColumnCopies copies;
  const Status status = RunInProcess(c.num_ranks, {}, [&](Communicator& communicator) {
    ThreadPool pool(c.num_threads);
    ShardedProduct product(TransportOf(communicator), pool, copies);
    if (Status grown = product.Grow(32, max_rows, max_columns); !grown.ok()) return grown;
    return function(product, communicator.rank() == 0);
  });
  ASSERT_TRUE(status.ok()) << status.message();
}

std::string NameOf(const Case& c) {
  return fmt::format("{} ranks, {} threads, {} tokens", c.num_ranks, c.num_threads, c.num_tokens);
}

TEST(ShardedProductTest, AStackHasTheBitsOfItsParts) {
  // Boundaries inside blocks of 16 rows; floats and bytes in one stack; fewer rows than ranks and tasks.
  const Matrix q(WeightType::kQ4_1, 72, 1);
  const Matrix k(WeightType::kF16, 24, 2);
  const Matrix v(WeightType::kQ8_0, 8, 3);
  const Matrix one(WeightType::kF32, 1, 4);
  for (const std::vector<WeightMatrix>& parts :
       {std::vector<WeightMatrix>{q.weights, k.weights, v.weights}, {one.weights}, {v.weights, one.weights}}) {
    for (const Case& c : Cases()) {
      const std::vector<float> x = RandomTokens(c.num_tokens, 5);
      const std::vector<float> wanted = Plain(parts, x, c.num_tokens);
      RunCase(c, 104, kColumns, [&](ShardedProduct& product, bool /*is_front*/) {
        std::vector<float> out(wanted.size());
        product.SetInput(parts, x.data(), c.num_tokens);
        Status status = product.Multiply(parts, out.data());
        EXPECT_TRUE(SameBits(out, wanted)) << NameOf(c) << ", " << parts.size() << " parts";
        return status;
      });
    }
  }
}

constexpr std::array kDownDivisions = {DownDivision::kColumnsInOneHop, DownDivision::kColumnsInTwoHops,
                                       DownDivision::kRows};

// Numbers of segments below, at and above the number of ranks; a last segment that is short; tasks of several pieces.
TEST(ShardedProductTest, AFeedForwardHasTheBitsOfItsProducts) {
  for (const size_t inner : {32, 608, 1312}) {
    const Matrix gate(WeightType::kQ4_0, inner, 6);
    const Matrix up(WeightType::kQ8_0, inner, 7);
    for (const WeightType type : {WeightType::kQ4_1, WeightType::kF16}) {
      const std::vector<std::byte> bytes = RandomWeights(type, 40, inner, 15);
      const WeightMatrix down = {.type = type, .rows = 40, .columns = inner, .data = bytes.data()};
      for (const Case& c : Cases()) {
        if (c.num_threads == 2 || c.num_tokens == 2) continue;
        const std::vector<float> x = RandomTokens(c.num_tokens, 8);
        std::vector<float> gated = Plain({&gate.weights, 1}, x, c.num_tokens);
        const std::vector<float> ups = Plain({&up.weights, 1}, x, c.num_tokens);
        SwiGlu(gated.data(), ups.data(), gated.size(), gated.data());
        const std::vector<float> wanted = Plain({&down, 1}, gated, c.num_tokens);
        for (const DownDivision division : kDownDivisions) {
          RunCase(c, std::max(inner, kColumns), std::max(inner, kColumns),
                  [&](ShardedProduct& product, bool /*is_front*/) {
                    std::vector<float> out(wanted.size());
                    product.SetInput(std::array{gate.weights, up.weights}, x.data(), c.num_tokens);
                    Status status = product.FeedForward(gate.weights, up.weights, down, division, out.data());
                    EXPECT_TRUE(SameBits(out, wanted)) << NameOf(c) << ", " << inner << " inside";
                    return status;
                  });
        }
      }
    }
  }
}

TEST(ShardedProductTest, GroupsOfRanksMultiplyByThemselves) {
  const Matrix gate(WeightType::kQ4_0, 608, 6);
  const std::vector<std::byte> bytes = RandomWeights(WeightType::kQ8_0, 40, 608, 15);
  const WeightMatrix down = {.type = WeightType::kQ8_0, .rows = 40, .columns = 608, .data = bytes.data()};
  const std::vector<std::vector<int>> groups = {{4, 0, 2}, {1}, {3, 5}};
  ColumnCopies copies;
  const Status status = RunInProcess(6, {}, [&](Communicator& communicator) {
    const auto mine = std::ranges::find_if(groups, [&](const std::vector<int>& group) {
      return std::ranges::find(group, communicator.rank()) != group.end();
    });
    // Each group has tokens of its own, and another number of them.
    const auto num_tokens = static_cast<size_t>(mine - groups.begin()) + 1;
    const std::vector<float> x = RandomTokens(num_tokens, num_tokens);
    std::vector<float> gated = Plain({&gate.weights, 1}, x, num_tokens);
    SwiGlu(gated.data(), gated.data(), gated.size(), gated.data());
    const std::vector<float> wanted = Plain({&down, 1}, gated, num_tokens);
    ThreadPool pool(1);
    ShardedProduct product(TransportOf(communicator), pool, copies);
    if (Status grown = product.Grow(4, 608, 608); !grown.ok()) return grown;
    product.SetGroup(*mine);
    for (const DownDivision division : kDownDivisions) {
      std::vector<float> out(wanted.size());
      product.SetInput({&gate.weights, 1}, x.data(), num_tokens);
      Status multiplied = product.FeedForward(gate.weights, gate.weights, down, division, out.data());
      if (!multiplied.ok()) return multiplied;
      EXPECT_TRUE(SameBits(out, wanted)) << "rank " << communicator.rank();
    }
    return Status();
  });
  ASSERT_TRUE(status.ok()) << status.message();
}

// Of more rows than Grow was told of: the vocabulary.
TEST(ShardedProductTest, OnlyTheFrontGetsWhatIsForTheFront) {
  const Matrix matrix(WeightType::kQ8_0, 333, 9);
  for (const Case& c : Cases()) {
    const std::vector<float> x = RandomTokens(c.num_tokens, 10);
    const std::vector<float> wanted = Plain({&matrix.weights, 1}, x, c.num_tokens);
    RunCase(c, 16, kColumns, [&](ShardedProduct& product, bool is_front) {
      std::vector<float> out(is_front ? wanted.size() : 0);
      product.SetInput({&matrix.weights, 1}, x.data(), c.num_tokens);
      Status status = product.MultiplyToFront(matrix.weights, is_front ? out.data() : nullptr);
      EXPECT_TRUE(!is_front || SameBits(out, wanted)) << NameOf(c);
      return status;
    });
  }
}

TEST(ShardedProductTest, EveryWeightTypeOnThreeRanks) {
  for (const WeightType type : AllWeightTypes()) {
    const size_t columns = 256;
    const std::vector<std::byte> bytes = RandomWeights(type, 50, columns, 11);
    const WeightMatrix matrix = {.type = type, .rows = 50, .columns = columns, .data = bytes.data()};
    Random random(12);
    std::vector<float> x(3 * columns);
    for (float& value : x) value = random.Normal();
    std::vector<std::vector<float>> of_ranks;
    for (const int64_t num_ranks : {1, 3}) {
      std::vector<float> out(3 * 50);
      ColumnCopies copies;
      const Status status = RunInProcess(num_ranks, {}, [&](Communicator& communicator) {
        ThreadPool pool(2);
        ShardedProduct product(TransportOf(communicator), pool, copies);
        if (Status grown = product.Grow(3, 50, columns); !grown.ok()) return grown;
        product.SetInput({&matrix, 1}, x.data(), 3);
        return product.MultiplyToFront(matrix, communicator.rank() == 0 ? out.data() : nullptr);
      });
      ASSERT_TRUE(status.ok()) << status.message();
      of_ranks.push_back(out);
    }
    EXPECT_TRUE(SameBits(of_ranks[0], of_ranks[1])) << InfoOf(type).name;
  }
}

TEST(ShardedProductTest, TellsTheTimeOfGatheringOnce) {
  const Matrix matrix(WeightType::kQ8_0, 64, 13);
  const std::vector<float> x = RandomTokens(1, 14);
  RunCase({2, 1, 1}, 64, kColumns, [&](ShardedProduct& product, bool /*is_front*/) {
    std::vector<float> out(64);
    product.SetInput({&matrix.weights, 1}, x.data(), 1);
    Status status = product.Multiply({&matrix.weights, 1}, out.data());
    EXPECT_GT(product.TakeGatherSeconds(), 0);
    EXPECT_EQ(product.TakeGatherSeconds(), 0);
    return status;
  });
}

}  // namespace
}  // namespace pando

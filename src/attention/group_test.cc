// What a group of ranks does with its cache as a whole: slots move, sequences fork, snapshots come back on another
// number of ranks, and no bit of a result changes.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "pando/attention.h"
#include "pando/communicator.h"
#include "src/base/random.h"
#include "src/base/testing/bits.h"
#include "src/base/testing/floats.h"

namespace pando {
namespace {

using ::pando::test_support::Normals;
using ::pando::test_support::SameBits;
using ::testing::HasSubstr;

constexpr int64_t kLayers = 2;
const AttentionOptions kOptions{.num_heads = 4,
                                .num_kv_heads = 2,
                                .head_dim = 32,
                                .num_layers = kLayers,
                                .tree = {.num_slots = 16, .chunk_tokens = 16},
                                .num_threads = 1};
constexpr size_t kKvFloats = 2 * 32;
constexpr size_t kQueryFloats = 4 * 32;

void AppendTokens(Attention& attention, int64_t sequence, int64_t num_tokens, uint64_t seed) {
  for (int64_t layer = 0; layer < kLayers; ++layer) {
    const size_t floats = static_cast<size_t>(num_tokens) * kKvFloats;
    const Status status = attention.Append(layer, sequence, Normals(floats, seed + static_cast<uint64_t>(layer)),
                                           Normals(floats, seed + 100 + static_cast<uint64_t>(layer)));
    ASSERT_TRUE(status.ok()) << status.message();
  }
}

// Outputs and log-sum-exps of a decode step of all given sequences in all layers.
std::vector<float> DecodeAll(Attention& attention, const std::vector<int64_t>& sequences) {
  std::vector<SequenceQueries> wanted;
  for (const int64_t sequence : sequences) wanted.push_back({sequence, 1});
  const std::vector<float> q = Normals(sequences.size() * kQueryFloats, 9);
  std::vector<float> all;
  for (int64_t layer = 0; layer < kLayers; ++layer) {
    std::vector<float> output(q.size());
    std::vector<float> lse(sequences.size() * 4);
    const Status status = attention.Decode(layer, wanted, q, output, lse);
    EXPECT_TRUE(status.ok()) << status.message();
    all.insert(all.end(), output.begin(), output.end());
    all.insert(all.end(), lse.begin(), lse.end());
  }
  return all;
}

// Two sequences and a fork of one of them that went on by itself.
std::vector<int64_t> Fill(Attention& attention) {
  const int64_t first = attention.AddSequence();
  AppendTokens(attention, first, 300, 1);
  const int64_t second = attention.AddSequence();
  AppendTokens(attention, second, 77, 2);
  const int64_t fork = attention.ForkSequence(first).value();
  AppendTokens(attention, fork, 50, 3);
  return {first, second, fork};
}

std::vector<float> Expected() {
  Attention attention = Attention::Create(kOptions).value();
  return DecodeAll(attention, Fill(attention));
}

// Calls function(attention, communicator) on every rank.
template <typename Function>
Status OnRanks(int64_t num_ranks, const AttentionOptions& options, const Function& function) {
  return RunInProcess(num_ranks, {}, [&](Communicator& communicator) {
    Result<Attention> attention = Attention::Create(communicator, options);
    if (!attention.ok()) return attention.status();
    function(*attention, communicator);
    return Status();
  });
}

class TemporaryFolder {
 public:
  TemporaryFolder() : path_(std::filesystem::temp_directory_path() / fmt::format("pando-group-test-{}", getpid())) {
    std::filesystem::create_directories(path_);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  std::string Path(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

TEST(GroupTest, RebalancingChangesNoBit) {
  const std::vector<float> expected = Expected();
  for (const int64_t num_ranks : {1, 2, 3, 5}) {
    const Status status = OnRanks(num_ranks, kOptions, [&](Attention& attention, Communicator& communicator) {
      const std::vector<int64_t> sequences = Fill(attention);
      Random random(static_cast<uint64_t>(num_ranks));  // the same weights on all ranks
      for (int round = 0; round < 6; ++round) {
        std::vector<double> weights(static_cast<size_t>(num_ranks));
        for (double& weight : weights) weight = static_cast<double>(random.Below(4));
        weights[random.Below(weights.size())] = 2.0;
        const Status moved = attention.Rebalance(weights);
        ASSERT_TRUE(moved.ok()) << moved.message();
        if (weights[static_cast<size_t>(communicator.rank())] == 0) {
          EXPECT_TRUE(attention.slots().empty());
          EXPECT_EQ(attention.memory().used, 0);
        }
        EXPECT_TRUE(SameBits(DecodeAll(attention, sequences), expected)) << num_ranks << " ranks, round " << round;
      }
      // And it grows on as if nothing had happened.
      AppendTokens(attention, sequences[1], 40, 4);
      EXPECT_EQ(attention.NumTokens(1, sequences[1]).value(), 117);
    });
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

TEST(GroupTest, RefusesWeightsThatDoNotFit) {
  Attention attention = Attention::Create(kOptions).value();
  EXPECT_THAT(attention.Rebalance(std::vector<double>{1.0, 2.0}).message(), HasSubstr("2 rank weights for 1 ranks"));
  EXPECT_FALSE(attention.Rebalance(std::vector<double>{0.0}).ok());
}

TEST(GroupTest, ASnapshotComesBackOnAnyNumberOfRanks) {
  const std::vector<float> expected = Expected();
  const TemporaryFolder folder;
  for (const int64_t writers : {1, 3}) {
    const std::string prefix = folder.Path(fmt::format("by-{}", writers));
    std::vector<int64_t> sequences;
    ASSERT_TRUE(OnRanks(writers, kOptions, [&](Attention& attention, Communicator& communicator) {
                  const std::vector<int64_t> own = Fill(attention);
                  if (communicator.rank() == 0) sequences = own;
                  const Status saved = attention.Save(prefix);
                  EXPECT_TRUE(saved.ok()) << saved.message();
                }).ok());
    for (const int64_t readers : {1, 2, 4, 7}) {
      ASSERT_TRUE(OnRanks(readers, kOptions, [&](Attention& attention, Communicator&) {
                    const Status loaded = attention.Load(prefix);
                    ASSERT_TRUE(loaded.ok()) << loaded.message();
                    EXPECT_TRUE(SameBits(DecodeAll(attention, sequences), expected)) << writers << " -> " << readers;
                  }).ok());
    }
  }
}

TEST(GroupTest, ABadSnapshotIsRefusedByAllRanksAndChangesNothing) {
  const TemporaryFolder folder;
  const std::string prefix = folder.Path("snapshot");
  const auto save = [&](const AttentionOptions& options) {
    ASSERT_TRUE(OnRanks(3, options, [&](Attention& attention, Communicator&) {
                  Fill(attention);
                  EXPECT_TRUE(attention.Save(prefix).ok());
                }).ok());
  };
  const auto expect_refused = [&](const std::string& why) {
    ASSERT_TRUE(OnRanks(2, kOptions, [&](Attention& attention, Communicator&) {
                  const std::vector<int64_t> sequences = Fill(attention);
                  const std::vector<float> before = DecodeAll(attention, sequences);
                  const Status status = attention.Load(prefix);
                  EXPECT_FALSE(status.ok());
                  EXPECT_THAT(std::string(status.message()), HasSubstr(why));
                  EXPECT_TRUE(SameBits(DecodeAll(attention, sequences), before));
                }).ok());
  };
  expect_refused("no snapshot");

  save(kOptions);
  // The last page of the last rank's file: only the rank that reads it can know, all must say so.
  const std::string last = prefix + ".2-of-3";
  const auto size = std::filesystem::file_size(last);
  {
    std::fstream file(last, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(size) - 5000);
    const char byte = static_cast<char>(file.get() ^ 1);
    file.seekp(static_cast<std::streamoff>(size) - 5000);
    file.put(byte);
  }
  expect_refused("2-of-3");
  std::filesystem::resize_file(last, size / 2);
  expect_refused("2-of-3");
  std::filesystem::remove(last);
  expect_refused("2-of-3");

  AttentionOptions other = kOptions;
  other.tree.num_slots = 32;
  save(other);
  expect_refused("slots");
}

TEST(GroupTest, AWindowGivesPagesBackAndChangesNoBit) {
  AttentionOptions windowed = kOptions;
  windowed.window = 40;
  // All tokens at once, before any query: nothing can be given back.
  Attention whole = Attention::Create(windowed).value();
  const int64_t sequence = whole.AddSequence();
  const std::vector<float> k = Normals(600 * kKvFloats, 5);
  const std::vector<float> v = Normals(600 * kKvFloats, 6);
  const std::vector<float> q = Normals(kQueryFloats, 7);
  std::vector<float> expected(q.size());
  ASSERT_TRUE(whole.Append(0, sequence, k, v).ok());
  ASSERT_TRUE(whole.Decode(0, {sequence, 1}, q, expected).ok());

  ASSERT_TRUE(
      OnRanks(3, windowed, [&](Attention& attention, Communicator&) {
        const int64_t own = attention.AddSequence();
        for (size_t token = 0; token < 600; ++token) {
          const size_t at = token * kKvFloats;
          ASSERT_TRUE(
              attention.Append(0, own, std::span(k).subspan(at, kKvFloats), std::span(v).subspan(at, kKvFloats)).ok());
        }
        std::vector<float> output(q.size());
        ASSERT_TRUE(attention.Decode(0, {own, 1}, q, output).ok());
        EXPECT_TRUE(SameBits(output, expected));
        EXPECT_LT(attention.memory().used * 3, whole.memory().used / 2);
        // What the sixtieth token from the end saw is gone.
        std::vector<float> many(60 * q.size());
        const Status late = attention.Decode(0, {own, 60}, Normals(many.size(), 8), many);
        EXPECT_THAT(std::string(late.message()), HasSubstr("left the window of 40"));
      }).ok());
}

TEST(GroupTest, AForkSharesItsParentsPages) {
  Attention attention = Attention::Create(kOptions).value();
  const int64_t parent = attention.AddSequence();
  AppendTokens(attention, parent, 320, 1);
  const int64_t used = attention.memory().used;
  const int64_t fork = attention.ForkSequence(parent).value();
  EXPECT_EQ(attention.memory().used, used);
  EXPECT_EQ(attention.memory().shared, used);
  EXPECT_TRUE(SameBits(DecodeAll(attention, {parent}), DecodeAll(attention, {fork})));
  ASSERT_TRUE(attention.RemoveSequence(parent).ok());
  EXPECT_EQ(attention.memory().used, used);
  EXPECT_EQ(attention.memory().shared, 0);
  ASSERT_TRUE(attention.RemoveSequence(fork).ok());
  EXPECT_EQ(attention.memory().used, 0);
}

}  // namespace
}  // namespace pando

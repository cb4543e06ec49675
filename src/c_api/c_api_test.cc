// The C interface gives what the C++ one gives, to the bit.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "pando/attention.h"
#include "pando/communicator.h"
#include "pando/pando.h"
#include "src/base/testing/allocation_counter.h"
#include "src/base/testing/bits.h"
#include "src/c_api/testing/c_attention.h"

namespace pando::c_api_testing {
namespace {

using ::pando::test_support::SameBits;
using ::testing::HasSubstr;

AttentionOptions SmallCppOptions() {
  return {.num_heads = kHeads,
          .num_kv_heads = 2,
          .head_dim = kHeadDim,
          .num_layers = kLayers,
          .tree = {.num_slots = 16, .chunk_tokens = 16},
          .num_threads = 1};
}

AttentionOptions UnusualCppOptions() {
  AttentionOptions options = SmallCppOptions();
  options.k_type = KvType::kQ8_0;
  options.v_type = KvType::kBF16;
  options.scale = 0.3f;
  options.softcap = 5;
  options.window = 70;
  options.sinks = kSinks;
  options.strategy = "direct";
  return options;
}

// The same calls for the class of C++.
class CppAttention {
 public:
  explicit CppAttention(const AttentionOptions& options) : attention_(Attention::Create(options).value()) {}

  Attention& get() { return attention_; }
  int64_t AddSequence() { return attention_.AddSequence(); }
  int64_t ForkSequence(int64_t parent) { return attention_.ForkSequence(parent).value(); }
  void Append(int64_t layer, int64_t sequence, const std::vector<float>& k, const std::vector<float>& v) {
    EXPECT_TRUE(attention_.Append(layer, sequence, k, v).ok());
  }
  void Decode(int64_t layer, const std::vector<pando_sequence_queries>& sequences, const std::vector<float>& q,
              std::vector<float>& output, std::vector<float>& lse) {
    std::vector<SequenceQueries> batch;
    for (const pando_sequence_queries& queries : sequences) batch.push_back({queries.sequence, queries.num_queries});
    EXPECT_TRUE(attention_.Decode(layer, batch, q, output, lse).ok());
  }
  void Prefill(int64_t layer, pando_sequence_queries sequence, const std::vector<float>& q, std::vector<float>& output,
               std::vector<float>& lse) {
    EXPECT_TRUE(attention_.Prefill(layer, {sequence.sequence, sequence.num_queries}, q, output, lse).ok());
  }

 private:
  Attention attention_;
};

// Outputs and log-sum-exps of a decode step of both sequences, and of a prefill of the fork's last tokens.
template <typename AnyAttention>
std::vector<float> Attend(AnyAttention& attention) {
  std::vector<float> all;
  for (int64_t layer = 0; layer < kLayers; ++layer) {
    std::vector<float> output(3 * kQueryFloats);
    std::vector<float> lse(3 * kHeads);
    attention.Decode(layer, {{0, 1}, {1, 2}}, Normals(3 * kQueryFloats, 20), output, lse);
    all.insert(all.end(), output.begin(), output.end());
    all.insert(all.end(), lse.begin(), lse.end());
    output.resize(5 * kQueryFloats);
    lse.resize(5 * kHeads);
    attention.Prefill(layer, {1, 5}, Normals(5 * kQueryFloats, 21), output, lse);
    all.insert(all.end(), output.begin(), output.end());
    all.insert(all.end(), lse.begin(), lse.end());
  }
  return all;
}

std::vector<float> Expected(const AttentionOptions& options) {
  CppAttention attention(options);
  Fill(attention);
  return Attend(attention);
}

// Each rank on a thread, with a communicator in C.
void RunRanks(int64_t num_ranks, const std::function<void(pando_communicator*)>& function) {
  pando_communicator_options options;
  ASSERT_EQ(pando_communicator_options_init(&options), PANDO_OK);
  std::vector<pando_communicator*> ranks(static_cast<size_t>(num_ranks));
  ASSERT_EQ(pando_communicator_create_in_process(num_ranks, &options, ranks.data()), PANDO_OK) << pando_last_error();
  std::vector<std::thread> threads;
  for (pando_communicator* rank : ranks) {
    threads.emplace_back([&function, rank] {
      function(rank);
      pando_communicator_destroy(rank);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// A folder for one test's files.
class Folder {
 public:
  Folder() { std::filesystem::create_directories(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string File(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_ =
      std::filesystem::temp_directory_path() / ("pando_c_api_test." + std::to_string(getpid()));
};

TEST(CApiTest, OptionsBeginAsInCpp) {
  pando_attention_options options;
  std::memset(&options, 0x55, sizeof(options));
  ASSERT_EQ(pando_attention_options_init(&options), PANDO_OK);
  const AttentionOptions expected;
  EXPECT_EQ(options.struct_size, sizeof(options));
  EXPECT_EQ(options.num_heads, expected.num_heads);
  EXPECT_EQ(options.num_kv_heads, expected.num_kv_heads);
  EXPECT_EQ(options.head_dim, expected.head_dim);
  EXPECT_EQ(options.num_layers, expected.num_layers);
  EXPECT_EQ(options.k_type, PANDO_KV_F16);
  EXPECT_EQ(options.v_type, PANDO_KV_F16);
  EXPECT_TRUE(std::isnan(options.scale));
  EXPECT_EQ(options.softcap, 0);
  EXPECT_EQ(options.window, 0);
  EXPECT_EQ(options.num_sinks, 0);
  EXPECT_EQ(options.num_slots, expected.tree.num_slots);
  EXPECT_EQ(options.chunk_tokens, expected.tree.chunk_tokens);
  EXPECT_EQ(options.strategy, expected.strategy);
  EXPECT_EQ(options.num_rank_weights, 0);
  EXPECT_EQ(options.num_threads, expected.num_threads);

  pando_communicator_options communicator_options;
  std::memset(&communicator_options, 0x55, sizeof(communicator_options));
  ASSERT_EQ(pando_communicator_options_init(&communicator_options), PANDO_OK);
  EXPECT_EQ(communicator_options.struct_size, sizeof(communicator_options));
  EXPECT_EQ(communicator_options.timeout_ms, 30'000);
  EXPECT_EQ(communicator_options.on_stuck, nullptr);
  EXPECT_EQ(communicator_options.user, nullptr);
}

TEST(CApiTest, AloneGivesTheBitsOfCpp) {
  CAttention small(SmallOptions());
  Fill(small);
  EXPECT_TRUE(SameBits(Attend(small), Expected(SmallCppOptions())));
  CAttention unusual(UnusualOptions());
  Fill(unusual);
  EXPECT_TRUE(SameBits(Attend(unusual), Expected(UnusualCppOptions())));
  EXPECT_FALSE(SameBits(Attend(small), Attend(unusual)));
}

TEST(CApiTest, EveryKvTypeIsTheOneOfCpp) {
  const std::vector<std::pair<int32_t, KvType>> types{{PANDO_KV_F32, KvType::kF32},
                                                      {PANDO_KV_F16, KvType::kF16},
                                                      {PANDO_KV_BF16, KvType::kBF16},
                                                      {PANDO_KV_Q8_0, KvType::kQ8_0}};
  for (const auto& [c_type, type] : types) {
    pando_attention_options options = SmallOptions();
    options.k_type = options.v_type = c_type;
    AttentionOptions cpp_options = SmallCppOptions();
    cpp_options.k_type = cpp_options.v_type = type;
    CAttention attention(options);
    Fill(attention);
    EXPECT_TRUE(SameBits(Attend(attention), Expected(cpp_options))) << c_type;
  }
}

TEST(CApiTest, RanksGiveTheBitsOfOneBeforeAndAfterRebalance) {
  const std::vector<float> expected = Expected(SmallCppOptions());
  const std::vector<double> uneven{5, 1, 2};
  RunRanks(3, [&](pando_communicator* communicator) {
    int64_t rank = -1;
    int64_t size = -1;
    EXPECT_EQ(pando_communicator_get_rank(communicator, &rank), PANDO_OK);
    EXPECT_EQ(pando_communicator_get_size(communicator, &size), PANDO_OK);
    EXPECT_EQ(size, 3);
    pando_attention_options options = SmallOptions();
    options.rank_weights = uneven.data();
    options.num_rank_weights = uneven.size();
    CAttention attention(options, communicator);
    int64_t begin = -1;
    int64_t end = -1;
    EXPECT_EQ(pando_attention_get_slots(attention.get(), &begin, &end), PANDO_OK);
    EXPECT_EQ(end - begin, (std::vector<int64_t>{10, 2, 4}[static_cast<size_t>(rank)]));
    Fill(attention);
    EXPECT_TRUE(SameBits(Attend(attention), expected));
    const std::vector<double> other{1, 1, 6};
    EXPECT_EQ(pando_attention_rebalance(attention.get(), other.data(), other.size()), PANDO_OK) << pando_last_error();
    EXPECT_EQ(pando_attention_get_slots(attention.get(), &begin, &end), PANDO_OK);
    EXPECT_EQ(end - begin, (std::vector<int64_t>{2, 2, 12}[static_cast<size_t>(rank)]));
    EXPECT_TRUE(SameBits(Attend(attention), expected));
    EXPECT_EQ(pando_attention_set_strategy(attention.get(), "direct"), PANDO_OK) << pando_last_error();
    EXPECT_TRUE(SameBits(Attend(attention), expected));
    pando_step_report report{};
    report.struct_size = sizeof(report);
    EXPECT_EQ(pando_attention_get_last_step(attention.get(), &report), PANDO_OK) << pando_last_error();
    EXPECT_STREQ(report.schedule, "direct");
    EXPECT_EQ(report.messages_sent, 2);
    EXPECT_GT(report.bytes_sent, 0);
    EXPECT_GT(report.compute_seconds, 0);
    EXPECT_GT(report.merge_seconds, 0);
  });
}

TEST(CApiTest, SnapshotsComeBackOnAnotherNumberOfRanks) {
  const Folder folder;
  const std::vector<float> expected = Expected(SmallCppOptions());
  RunRanks(3, [&](pando_communicator* communicator) {
    CAttention attention(SmallOptions(), communicator);
    Fill(attention);
    EXPECT_EQ(pando_attention_save(attention.get(), folder.File("cache").c_str()), PANDO_OK) << pando_last_error();
  });
  CAttention attention(SmallOptions());
  EXPECT_EQ(pando_attention_load(attention.get(), folder.File("cache").c_str()), PANDO_OK) << pando_last_error();
  EXPECT_TRUE(SameBits(Attend(attention), expected));
  EXPECT_NE(pando_attention_load(attention.get(), folder.File("absent").c_str()), PANDO_OK);
  EXPECT_THAT(pando_last_error(), HasSubstr("absent"));
  EXPECT_EQ(pando_attention_save(attention.get(), folder.File("no/folder").c_str()), PANDO_FAILED);
  EXPECT_TRUE(SameBits(Attend(attention), expected));
}

TEST(CApiTest, ReportsWhatCppReports) {
  CAttention attention(SmallOptions());
  CppAttention cpp_attention(SmallCppOptions());
  Fill(attention);
  Fill(cpp_attention);
  pando_memory memory{};
  memory.struct_size = sizeof(memory);
  ASSERT_EQ(pando_attention_get_memory(attention.get(), &memory), PANDO_OK);
  const AttentionMemory expected = cpp_attention.get().memory();
  EXPECT_GT(memory.shared, 0);
  EXPECT_EQ(memory.used, expected.used);
  EXPECT_EQ(memory.shared, expected.shared);
  EXPECT_EQ(memory.allocated, expected.allocated);
  EXPECT_EQ(memory.buffers, expected.buffers);
  int64_t num_tokens = -1;
  EXPECT_EQ(pando_attention_get_num_tokens(attention.get(), 1, 1, &num_tokens), PANDO_OK);
  EXPECT_EQ(num_tokens, 321);
  EXPECT_EQ(pando_attention_remove_sequence(attention.get(), 1), PANDO_OK);
  EXPECT_INVALID(pando_attention_get_num_tokens(attention.get(), 1, 1, &num_tokens), "there is no sequence 1");
  EXPECT_EQ(pando_attention_reserve(attention.get(), 50'000), PANDO_OK) << pando_last_error();
  ASSERT_EQ(pando_attention_get_memory(attention.get(), &memory), PANDO_OK);
  EXPECT_GT(memory.allocated, expected.allocated);
}

TEST(CApiTest, ADecodeStepAllocatesNothing) {
  CAttention attention(SmallOptions());
  Fill(attention);
  const std::vector<pando_sequence_queries> sequences{{0, 1}, {1, 2}};
  const std::vector<float> q = Normals(3 * kQueryFloats, 20);
  std::vector<float> output(3 * kQueryFloats);
  std::vector<float> lse(3 * kHeads);
  attention.Decode(0, sequences, q, output, lse);
  const size_t before = test_support::NumAllocations();
  for (int step = 0; step < 5; ++step) attention.Decode(0, sequences, q, output, lse);
  EXPECT_EQ(test_support::NumAllocations(), before);
}

TEST(CApiTest, OutputsWithoutLse) {
  CAttention attention(SmallOptions());
  Fill(attention);
  const pando_sequence_queries last{0, 1};
  const std::vector<float> q = Normals(kQueryFloats, 20);
  std::vector<float> output(kQueryFloats);
  std::vector<float> prefilled(kQueryFloats);
  EXPECT_EQ(pando_attention_decode(attention.get(), 0, &last, 1, q.data(), q.size(), output.data(), output.size(),
                                   nullptr, 0),
            PANDO_OK);
  EXPECT_EQ(pando_attention_prefill(attention.get(), 0, last, q.data(), q.size(), prefilled.data(), prefilled.size(),
                                    nullptr, 0),
            PANDO_OK);
  EXPECT_TRUE(SameBits(output, prefilled));
  EXPECT_EQ(pando_attention_decode(attention.get(), 0, nullptr, 0, nullptr, 0, nullptr, 0, nullptr, 0), PANDO_OK)
      << pando_last_error();
}

TEST(CApiTest, ACommunicatorStaysWhileAnAttentionUsesIt) {
  pando_communicator* communicator = nullptr;
  ASSERT_EQ(pando_communicator_create_alone(&communicator), PANDO_OK);
  const char* transport = nullptr;
  EXPECT_EQ(pando_communicator_get_transport(communicator, &transport), PANDO_OK);
  EXPECT_STREQ(transport, "inproc");
  EXPECT_EQ(pando_communicator_barrier(communicator), PANDO_OK);
  CAttention attention(SmallOptions(), communicator);
  pando_communicator_destroy(communicator);
  Fill(attention);
  EXPECT_TRUE(SameBits(Attend(attention), Expected(SmallCppOptions())));
}

TEST(CApiTest, ARankThatLeftIsNamed) {
  pando_communicator_options options;
  ASSERT_EQ(pando_communicator_options_init(&options), PANDO_OK);
  std::vector<pando_communicator*> ranks(2);
  ASSERT_EQ(pando_communicator_create_in_process(2, &options, ranks.data()), PANDO_OK);
  pando_communicator_destroy(ranks[1]);
  EXPECT_EQ(pando_communicator_barrier(ranks[0]), PANDO_FAILED);
  EXPECT_THAT(pando_last_error(), HasSubstr("rank 1"));
  pando_communicator_destroy(ranks[0]);
}

TEST(CApiTest, SaysWhetherThereIsMpi) {
  EXPECT_EQ(pando_built_with_mpi(), Communicator::BuiltWithMpi() ? 1 : 0);
  EXPECT_EQ(pando_started_by_mpirun(), Communicator::StartedByMpirun() ? 1 : 0);
}

TEST(CApiTest, DestroyingNothingIsFine) {
  pando_communicator_destroy(nullptr);
  pando_attention_destroy(nullptr);
}

}  // namespace
}  // namespace pando::c_api_testing

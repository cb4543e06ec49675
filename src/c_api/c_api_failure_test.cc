// The C interface takes any bad argument with a sentence, and lets no exception out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

#include "pando/pando.h"
#include "src/c_api/call.h"
#include "src/c_api/testing/c_attention.h"

namespace pando::c_api_testing {
namespace {

using ::testing::HasSubstr;

TEST(CApiFailureTest, TheLastErrorIsTheThreadsOwnAndStays) {
  std::thread([] {
    EXPECT_STREQ(pando_last_error(), "");
    EXPECT_INVALID(pando_communicator_create_alone(nullptr), "pando_communicator_create_alone: communicator is NULL");
    std::thread([] { EXPECT_STREQ(pando_last_error(), ""); }).join();
    pando_communicator* communicator = nullptr;
    EXPECT_EQ(pando_communicator_create_alone(&communicator), PANDO_OK);
    EXPECT_THAT(pando_last_error(), HasSubstr("communicator is NULL"));
    pando_communicator_destroy(communicator);
  }).join();
}

TEST(CApiFailureTest, NoExceptionGetsOut) {
  EXPECT_EQ(c_api::RunCall("f", {}, []() -> Status { throw std::bad_alloc(); }), PANDO_OUT_OF_MEMORY);
  EXPECT_THAT(pando_last_error(), HasSubstr("memory"));
  EXPECT_EQ(c_api::RunCall("f", {}, []() -> Status { throw std::length_error("too long"); }), PANDO_FAILED);
  EXPECT_STREQ(pando_last_error(), "f: too long");
  EXPECT_EQ(c_api::RunCall("f", {}, []() -> Status { throw 7; }), PANDO_FAILED);
  EXPECT_THAT(pando_last_error(), HasSubstr("exception"));
  EXPECT_EQ(c_api::RunCall("f", {}, [] { return OutOfMemory("none left"); }), PANDO_OUT_OF_MEMORY);
  EXPECT_STREQ(pando_last_error(), "none left");
  EXPECT_EQ(c_api::RunCall("f", {}, [] { return Failed("lost"); }), PANDO_FAILED);
}

TEST(CApiFailureTest, NullPointersToCommunicators) {
  pando_communicator* communicator = nullptr;
  pando_communicator_options options;
  ASSERT_EQ(pando_communicator_options_init(&options), PANDO_OK);
  ASSERT_EQ(pando_communicator_create_alone(&communicator), PANDO_OK);
  int64_t number = 0;
  const char* text = nullptr;
  EXPECT_INVALID(pando_communicator_options_init(nullptr), "options is NULL");
  EXPECT_INVALID(pando_communicator_create_in_process(1, nullptr, &communicator), "options is NULL");
  EXPECT_INVALID(pando_communicator_create_in_process(1, &options, nullptr), "communicators is NULL");
  EXPECT_INVALID(pando_communicator_create_mpi(nullptr, &communicator), "options is NULL");
  EXPECT_INVALID(pando_communicator_create_mpi(&options, nullptr), "communicator is NULL");
  EXPECT_INVALID(pando_communicator_get_rank(nullptr, &number), "communicator is NULL");
  EXPECT_INVALID(pando_communicator_get_rank(communicator, nullptr), "rank is NULL");
  EXPECT_INVALID(pando_communicator_get_size(nullptr, &number), "communicator is NULL");
  EXPECT_INVALID(pando_communicator_get_size(communicator, nullptr), "size is NULL");
  EXPECT_INVALID(pando_communicator_get_transport(nullptr, &text), "communicator is NULL");
  EXPECT_INVALID(pando_communicator_get_transport(communicator, nullptr), "transport is NULL");
  EXPECT_INVALID(pando_communicator_barrier(nullptr), "communicator is NULL");
  pando_communicator_destroy(communicator);
}

TEST(CApiFailureTest, CommunicatorsThatCannotBe) {
  std::vector<pando_communicator*> ranks(2);
  pando_communicator_options options;
  EXPECT_INVALID(pando_communicator_options_init_size(&options, sizeof(options) - 8), "pando_communicator_options has");
  ASSERT_EQ(pando_communicator_options_init(&options), PANDO_OK);
  for (const int64_t num_ranks : {int64_t{0}, int64_t{-1}, std::numeric_limits<int64_t>::max()})
    EXPECT_INVALID(pando_communicator_create_in_process(num_ranks, &options, ranks.data()), "ranks");
  options.timeout_ms = 0;
  EXPECT_INVALID(pando_communicator_create_in_process(2, &options, ranks.data()), "timeout is 0");
  EXPECT_INVALID(pando_communicator_create_mpi(&options, ranks.data()), "timeout is 0");
  options.struct_size = 0;
  EXPECT_INVALID(pando_communicator_create_in_process(2, &options, ranks.data()), "pando_communicator_options_init");
  EXPECT_INVALID(pando_communicator_create_mpi(&options, ranks.data()), "pando_communicator_options_init");
  EXPECT_EQ(ranks, (std::vector<pando_communicator*>{nullptr, nullptr}));
}

TEST(CApiFailureTest, NullPointersToAttention) {
  CAttention attention(SmallOptions());
  Fill(attention);
  pando_attention* const a = attention.get();
  const pando_attention_options options = SmallOptions();
  pando_attention* created = nullptr;
  pando_communicator* communicator = nullptr;
  ASSERT_EQ(pando_communicator_create_alone(&communicator), PANDO_OK);
  int64_t number = 0;
  pando_memory memory{};
  pando_step_report report{};
  EXPECT_INVALID(pando_attention_options_init(nullptr), "options is NULL");
  EXPECT_INVALID(pando_attention_create(nullptr, &options, &created), "communicator is NULL");
  EXPECT_INVALID(pando_attention_create(communicator, nullptr, &created), "options is NULL");
  EXPECT_INVALID(pando_attention_create(communicator, &options, nullptr), "attention is NULL");
  EXPECT_INVALID(pando_attention_create_alone(nullptr, &created), "options is NULL");
  EXPECT_INVALID(pando_attention_create_alone(&options, nullptr), "attention is NULL");
  EXPECT_INVALID(pando_attention_add_sequence(nullptr, &number), "attention is NULL");
  EXPECT_INVALID(pando_attention_add_sequence(a, nullptr), "sequence is NULL");
  EXPECT_INVALID(pando_attention_fork_sequence(nullptr, 0, &number), "attention is NULL");
  EXPECT_INVALID(pando_attention_fork_sequence(a, 0, nullptr), "sequence is NULL");
  EXPECT_INVALID(pando_attention_remove_sequence(nullptr, 0), "attention is NULL");
  EXPECT_INVALID(pando_attention_reserve(nullptr, 0), "attention is NULL");
  EXPECT_INVALID(pando_attention_get_num_tokens(nullptr, 0, 0, &number), "attention is NULL");
  EXPECT_INVALID(pando_attention_get_num_tokens(a, 0, 0, nullptr), "num_tokens is NULL");
  EXPECT_INVALID(pando_attention_set_strategy(nullptr, "tree"), "attention is NULL");
  EXPECT_INVALID(pando_attention_set_strategy(a, nullptr), "strategy is NULL");
  EXPECT_INVALID(pando_attention_rebalance(nullptr, nullptr, 0), "attention is NULL");
  EXPECT_INVALID(pando_attention_rebalance(a, nullptr, 1), "rank_weights is NULL");
  EXPECT_INVALID(pando_attention_save(nullptr, "x"), "attention is NULL");
  EXPECT_INVALID(pando_attention_save(a, nullptr), "prefix is NULL");
  EXPECT_INVALID(pando_attention_load(nullptr, "x"), "attention is NULL");
  EXPECT_INVALID(pando_attention_load(a, nullptr), "prefix is NULL");
  EXPECT_INVALID(pando_attention_get_slots(nullptr, &number, &number), "attention is NULL");
  EXPECT_INVALID(pando_attention_get_slots(a, nullptr, &number), "begin is NULL");
  EXPECT_INVALID(pando_attention_get_slots(a, &number, nullptr), "end is NULL");
  EXPECT_INVALID(pando_attention_get_memory(nullptr, &memory), "attention is NULL");
  EXPECT_INVALID(pando_attention_get_memory(a, nullptr), "memory is NULL");
  EXPECT_INVALID(pando_attention_get_last_step(nullptr, &report), "attention is NULL");
  EXPECT_INVALID(pando_attention_get_last_step(a, nullptr), "report is NULL");
  pando_communicator_destroy(communicator);
}

TEST(CApiFailureTest, NullArraysAndWrongSizes) {
  CAttention attention(SmallOptions());
  Fill(attention);
  pando_attention* const a = attention.get();
  const std::vector<float> in(kQueryFloats);
  std::vector<float> out(kQueryFloats);
  std::vector<float> lse(kHeads);
  const pando_sequence_queries one{0, 1};
  const pando_sequence_queries absent{7, 1};
  const auto append = [&](pando_attention* to, const float* k, size_t num_k, const float* v, size_t num_v) {
    return pando_attention_append(to, 0, 0, k, num_k, v, num_v);
  };
  EXPECT_INVALID(append(nullptr, in.data(), kKvFloats, in.data(), kKvFloats), "attention is NULL");
  EXPECT_INVALID(append(a, nullptr, kKvFloats, in.data(), kKvFloats), "k is NULL: it must point to 64 elements");
  EXPECT_INVALID(append(a, in.data(), kKvFloats, nullptr, kKvFloats), "v is NULL");
  EXPECT_INVALID(append(a, in.data(), kKvFloats, in.data(), kKvFloats - 1), "63");
  EXPECT_INVALID(append(a, in.data(), kKvFloats - 1, in.data(), kKvFloats - 1), "63");
  EXPECT_INVALID(pando_attention_append(a, kLayers, 0, in.data(), kKvFloats, in.data(), kKvFloats), "layer 2");
  EXPECT_INVALID(pando_attention_append(a, 0, 7, in.data(), kKvFloats, in.data(), kKvFloats), "sequence 7");

  const auto decode = [&](const pando_sequence_queries* sequences, const float* q, size_t num_q, float* output,
                          size_t num_output, float* energies, size_t num_lse) {
    return pando_attention_decode(a, 0, sequences, 1, q, num_q, output, num_output, energies, num_lse);
  };
  const auto prefill = [&](const pando_sequence_queries* sequences, const float* q, size_t num_q, float* output,
                           size_t num_output, float* energies, size_t num_lse) {
    return pando_attention_prefill(a, 0, *sequences, q, num_q, output, num_output, energies, num_lse);
  };
  constexpr size_t kFloats = kQueryFloats;
  EXPECT_INVALID(decode(nullptr, in.data(), kFloats, out.data(), kFloats, lse.data(), kHeads), "sequences is NULL");
  const auto check_both = [&](const auto& call) {
    EXPECT_INVALID(call(&one, nullptr, kFloats, out.data(), kFloats, lse.data(), kHeads), "queries is NULL");
    EXPECT_INVALID(call(&one, nullptr, 0, out.data(), kFloats, lse.data(), kHeads), "queries have 0 floats");
    EXPECT_INVALID(call(&one, in.data(), kFloats, nullptr, kFloats, lse.data(), kHeads), "output is NULL");
    EXPECT_INVALID(call(&one, in.data(), kFloats, out.data(), kFloats, nullptr, kHeads), "lse is NULL");
    EXPECT_INVALID(call(&one, in.data(), kFloats - 1, out.data(), kFloats, lse.data(), kHeads), "127 floats");
    EXPECT_INVALID(call(&one, in.data(), kFloats, out.data(), kFloats - 1, lse.data(), kHeads), "127 floats");
    EXPECT_INVALID(call(&one, in.data(), kFloats, out.data(), kFloats, lse.data(), kHeads - 1), "3 floats");
    EXPECT_INVALID(call(&absent, in.data(), kFloats, out.data(), kFloats, lse.data(), kHeads), "no sequence 7");
  };
  check_both(decode);
  check_both(prefill);
  EXPECT_INVALID(pando_attention_decode(nullptr, 0, &one, 1, in.data(), kFloats, out.data(), kFloats, nullptr, 0),
                 "attention is NULL");
  EXPECT_INVALID(pando_attention_prefill(nullptr, 0, one, in.data(), kFloats, out.data(), kFloats, nullptr, 0),
                 "attention is NULL");
  int64_t num_tokens = 0;
  EXPECT_EQ(pando_attention_get_num_tokens(a, 0, 0, &num_tokens), PANDO_OK);
  EXPECT_EQ(num_tokens, 300);
}

TEST(CApiFailureTest, ValuesThatCannotBe) {
  CAttention attention(SmallOptions());
  pando_attention* const a = attention.get();
  int64_t number = -5;
  const double weights[2] = {1, 1};
  EXPECT_INVALID(pando_attention_fork_sequence(a, 3, &number), "sequence 3");
  EXPECT_INVALID(pando_attention_remove_sequence(a, 3), "sequence 3");
  EXPECT_INVALID(pando_attention_get_num_tokens(a, 9, 0, &number), "there is no");
  EXPECT_INVALID(pando_attention_reserve(a, -1), "-1 tokens");
  EXPECT_INVALID(pando_attention_set_strategy(a, "magic"), "'magic' is not a strategy");
  EXPECT_INVALID(pando_attention_rebalance(a, weights, 2), "2 rank weights for 1 ranks");
  EXPECT_EQ(number, -5);
  for (const int64_t num_tokens : {int64_t{1} << 50, std::numeric_limits<int64_t>::max()}) {
    EXPECT_EQ(pando_attention_reserve(a, num_tokens), PANDO_OUT_OF_MEMORY);
    EXPECT_THAT(pando_last_error(), HasSubstr("the KV cache needs"));
  }
  pando_memory memory{};
  EXPECT_INVALID(pando_attention_get_memory(a, &memory), "sizeof(pando_memory)");
  pando_step_report report{};
  EXPECT_INVALID(pando_attention_get_last_step(a, &report), "sizeof(pando_step_report)");
}

TEST(CApiFailureTest, OptionsThatCannotBe) {
  pando_attention* attention = nullptr;
  const auto create = [&](const std::function<void(pando_attention_options&)>& change) {
    pando_attention_options options = UnusualOptions();
    change(options);
    return pando_attention_create_alone(&options, &attention);
  };
  const double weight = 1;
  constexpr size_t kWild = std::numeric_limits<size_t>::max();
  pando_attention_options options;
  EXPECT_INVALID(pando_attention_options_init_size(&options, sizeof(options) + 8), "pando_attention_options has");
  EXPECT_INVALID(create([](auto& o) { o.struct_size = 0; }), "call pando_attention_options_init first");
  EXPECT_INVALID(create([](auto& o) { o.struct_size += 8; }), "struct_size");
  EXPECT_INVALID(create([](auto& o) { o.struct_size -= 8; }), "struct_size");
  EXPECT_INVALID(create([](auto& o) { o.k_type = 4; }), "k_type is 4");
  EXPECT_INVALID(create([](auto& o) { o.v_type = -1; }), "v_type is -1");
  EXPECT_INVALID(create([](auto& o) { o.strategy = nullptr; }), "strategy is NULL");
  EXPECT_INVALID(create([](auto& o) { o.strategy = ""; }), "'' is not a strategy");
  EXPECT_INVALID(create([](auto& o) { o.sinks = nullptr; }), "sinks is NULL");
  EXPECT_INVALID(create([](auto& o) { o.num_sinks = kWild; }), "num_sinks is");
  EXPECT_INVALID(create([](auto& o) { o.num_rank_weights = 1; }), "rank_weights is NULL");
  EXPECT_INVALID(create([&](auto& o) {
                   o.rank_weights = &weight;
                   o.num_rank_weights = kWild;
                 }),
                 "num_rank_weights is");
  EXPECT_INVALID(create([](auto& o) { o.num_heads = 0, o.num_sinks = 0; }), "number of heads is 0");
  // Heads x head dim would be 2^64 floats, or 0.
  EXPECT_INVALID(create([](auto& o) { o.num_heads = o.num_kv_heads = int64_t{1} << 59, o.num_sinks = 0; }),
                 "number of heads is 576460752303423488");
  EXPECT_INVALID(create([](auto& o) { o.num_layers = int64_t{1} << 40; }), "number of layers is 1099511627776");
  EXPECT_INVALID(create([](auto& o) { o.num_kv_heads = 3; }), "4 heads cannot share 3 KV heads");
  EXPECT_INVALID(create([](auto& o) { o.head_dim = 33; }), "33");
  EXPECT_INVALID(create([](auto& o) { o.num_layers = 0; }), "number of layers is 0");
  EXPECT_INVALID(create([](auto& o) { o.scale = std::numeric_limits<float>::infinity(); }), "scale is inf");
  EXPECT_INVALID(create([](auto& o) { o.softcap = -1; }), "softcap is -1");
  EXPECT_INVALID(create([](auto& o) { o.window = -1; }), "window is -1");
  EXPECT_INVALID(create([](auto& o) { o.num_slots = 3; }), "3");
  EXPECT_INVALID(create([](auto& o) { o.chunk_tokens = 5; }), "5");
  EXPECT_INVALID(create([](auto& o) { o.num_threads = -1; }), "number of threads is -1");
  EXPECT_EQ(attention, nullptr);
}

}  // namespace
}  // namespace pando::c_api_testing

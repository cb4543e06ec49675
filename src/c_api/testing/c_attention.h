// What the tests of pando.h share: small options, an attention that a test owns, and tokens to fill it with.
#ifndef PANDO_SRC_C_API_TESTING_C_ATTENTION_H_
#define PANDO_SRC_C_API_TESTING_C_ATTENTION_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "pando/pando.h"
#include "src/base/testing/floats.h"

namespace pando::c_api_testing {

inline constexpr size_t kHeads = 4;
inline constexpr size_t kHeadDim = 32;
inline constexpr size_t kKvFloats = 2 * kHeadDim;
inline constexpr size_t kQueryFloats = kHeads * kHeadDim;
inline constexpr int64_t kLayers = 2;
inline const std::vector<float> kSinks{0.5f, -1.0f, 2.0f, 0.0f};

using ::pando::test_support::Normals;

inline pando_attention_options SmallOptions() {
  pando_attention_options options;
  EXPECT_EQ(pando_attention_options_init(&options), PANDO_OK);
  options.num_heads = kHeads;
  options.num_kv_heads = 2;
  options.head_dim = kHeadDim;
  options.num_layers = kLayers;
  options.num_slots = 16;
  options.chunk_tokens = 16;
  options.num_threads = 1;
  return options;
}

// Every option is other than by default.
inline pando_attention_options UnusualOptions() {
  pando_attention_options options = SmallOptions();
  options.k_type = PANDO_KV_Q8_0;
  options.v_type = PANDO_KV_BF16;
  options.scale = 0.3f;
  options.softcap = 5;
  options.window = 70;
  options.sinks = kSinks.data();
  options.num_sinks = kSinks.size();
  options.strategy = "direct";
  return options;
}

// An attention in C that the test owns.
class CAttention {
 public:
  explicit CAttention(const pando_attention_options& options, pando_communicator* communicator = nullptr) {
    const pando_status status = communicator == nullptr ? pando_attention_create_alone(&options, &attention_)
                                                        : pando_attention_create(communicator, &options, &attention_);
    EXPECT_EQ(status, PANDO_OK) << pando_last_error();
  }
  CAttention(const CAttention&) = delete;
  CAttention& operator=(const CAttention&) = delete;
  ~CAttention() { pando_attention_destroy(attention_); }

  pando_attention* get() { return attention_; }

  int64_t AddSequence() {
    int64_t sequence = -1;
    EXPECT_EQ(pando_attention_add_sequence(attention_, &sequence), PANDO_OK) << pando_last_error();
    return sequence;
  }
  int64_t ForkSequence(int64_t parent) {
    int64_t sequence = -1;
    EXPECT_EQ(pando_attention_fork_sequence(attention_, parent, &sequence), PANDO_OK) << pando_last_error();
    return sequence;
  }
  void Append(int64_t layer, int64_t sequence, const std::vector<float>& k, const std::vector<float>& v) {
    EXPECT_EQ(pando_attention_append(attention_, layer, sequence, k.data(), k.size(), v.data(), v.size()), PANDO_OK)
        << pando_last_error();
  }
  void Decode(int64_t layer, const std::vector<pando_sequence_queries>& sequences, const std::vector<float>& q,
              std::vector<float>& output, std::vector<float>& lse) {
    EXPECT_EQ(pando_attention_decode(attention_, layer, sequences.data(), sequences.size(), q.data(), q.size(),
                                     output.data(), output.size(), lse.data(), lse.size()),
              PANDO_OK)
        << pando_last_error();
  }
  void Prefill(int64_t layer, pando_sequence_queries sequence, const std::vector<float>& q, std::vector<float>& output,
               std::vector<float>& lse) {
    EXPECT_EQ(pando_attention_prefill(attention_, layer, sequence, q.data(), q.size(), output.data(), output.size(),
                                      lse.data(), lse.size()),
              PANDO_OK)
        << pando_last_error();
  }

 private:
  pando_attention* attention_ = nullptr;
};

// A sequence of 300 tokens, and a fork of it that went on.
template <typename AnyAttention>
void Fill(AnyAttention& attention) {
  const int64_t first = attention.AddSequence();
  for (int64_t layer = 0; layer < kLayers; ++layer)
    attention.Append(layer, first, Normals(300 * kKvFloats, 1 + layer), Normals(300 * kKvFloats, 5 + layer));
  const int64_t fork = attention.ForkSequence(first);
  for (int64_t layer = 0; layer < kLayers; ++layer)
    attention.Append(layer, fork, Normals(21 * kKvFloats, 11 + layer), Normals(21 * kKvFloats, 15 + layer));
}

#define EXPECT_INVALID(call, sentence)                               \
  do {                                                               \
    EXPECT_EQ(call, PANDO_INVALID_ARGUMENT);                         \
    EXPECT_THAT(pando_last_error(), ::testing::HasSubstr(sentence)); \
  } while (false)

}  // namespace pando::c_api_testing

#endif  // PANDO_SRC_C_API_TESTING_C_ATTENTION_H_

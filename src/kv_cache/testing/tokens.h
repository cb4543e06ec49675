// Tokens that tell where they belong, and what their pages must be: for tests of the cache.
#ifndef PANDO_SRC_KV_CACHE_TESTING_TOKENS_H_
#define PANDO_SRC_KV_CACHE_TESTING_TOKENS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <span>
#include <vector>

#include "src/base/random.h"
#include "src/base/thread_pool.h"
#include "src/kv_cache/kv_cache.h"

namespace pando::test_support {

// Of the caches that tests make.
inline constexpr TreeShape kEightSlots{.num_slots = 8, .chunk_tokens = 16};
inline constexpr TreeShape kFourSlots{.num_slots = 4, .chunk_tokens = 16};
inline constexpr int64_t kLayers = 2;

// Tokens named begin, begin + 1, ...
inline std::vector<uint64_t> Names(uint64_t begin, uint64_t end) {
  std::vector<uint64_t> names(end - begin);
  std::iota(names.begin(), names.end(), begin);
  return names;
}

// The keys of a token, [num_kv_heads][head_dim], as its name and its layer decide. Values are their negatives.
inline std::vector<float> KeysOf(const KvCacheOptions& options, int64_t layer, uint64_t name) {
  Random random(name * 1000003 + static_cast<uint64_t>(layer));
  std::vector<float> keys(static_cast<size_t>(options.num_kv_heads) * options.layout.head_dim);
  for (float& element : keys) element = random.Normal();
  return keys;
}

inline std::vector<float> Negated(std::vector<float> values) {
  std::ranges::transform(values, values.begin(), [](float value) { return -value; });
  return values;
}

inline Status AppendTokens(KvCache& cache, int64_t layer, int64_t sequence, std::span<const uint64_t> names) {
  static ThreadPool threads(2);
  std::vector<float> k;
  for (const uint64_t name : names) {
    const std::vector<float> keys = KeysOf(cache.options(), layer, name);
    k.insert(k.end(), keys.begin(), keys.end());
  }
  const std::vector<float> v = Negated(k);
  Status status = cache.PrepareAppend(layer, sequence, k.size(), v.size());
  if (status.ok()) cache.AppendPrepared(layer, sequence, k, v, threads);
  return status;
}

// The page of one chunk with these tokens, byte for byte.
inline std::vector<std::byte> PageOf(const KvCacheOptions& options, int64_t layer, std::span<const uint64_t> names) {
  const size_t head_bytes = options.layout.head_bytes();
  const size_t head_dim = options.layout.head_dim;
  std::vector<std::byte> page(static_cast<size_t>(options.num_kv_heads) * head_bytes);
  for (size_t token = 0; token < names.size(); ++token) {
    const std::vector<float> k = KeysOf(options, layer, names[token]);
    const std::vector<float> v = Negated(k);
    for (size_t head = 0; head < static_cast<size_t>(options.num_kv_heads); ++head) {
      WriteTokens(options.layout, page.data() + head * head_bytes, token, 1, k.data() + head * head_dim,
                  v.data() + head * head_dim, head_dim);
    }
  }
  return page;
}

// A layer of the sequence has these tokens, and of those not released all that the shard owns are where they belong.
inline bool HoldsTokens(const KvCache& cache, int64_t layer, int64_t sequence, std::span<const uint64_t> names) {
  const KvCacheOptions& options = cache.options();
  const int64_t num_tokens = static_cast<int64_t>(names.size());
  if (cache.num_tokens(layer, sequence) != num_tokens) return false;
  const OwnedChunks owned(options.tree, options.slots);
  const int64_t first_chunk = cache.first_token(layer, sequence) / options.tree.chunk_tokens;
  for (int64_t chunk = first_chunk; chunk < NumChunks(options.tree, num_tokens); ++chunk) {
    if (!owned.Owns(chunk)) continue;
    const auto in_chunk = names.subspan(static_cast<size_t>(chunk * options.tree.chunk_tokens),
                                        static_cast<size_t>(NumTokensOfChunk(options.tree, chunk, num_tokens)));
    const std::vector<std::byte> expected = PageOf(options, layer, in_chunk);
    if (std::memcmp(cache.page(layer, sequence, chunk), expected.data(), expected.size()) != 0) return false;
  }
  return true;
}

}  // namespace pando::test_support

#endif  // PANDO_SRC_KV_CACHE_TESTING_TOKENS_H_

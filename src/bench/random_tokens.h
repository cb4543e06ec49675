// RandomTokens: keys and values of any number of tokens, cheap to make and the same on every rank.
//
//   const RandomTokens tokens(num_kv_heads * head_dim, num_tokens);
//   for (int64_t piece = 0; ...; ++piece) Append(tokens.Keys(piece, count), tokens.Values(piece, count));
//
// Pieces are windows on one stretch of normal random numbers that begin at different places. The places repeat after
// 1021 pieces for keys and after 1019 for values, two primes: a million pieces go by before one comes again.
#ifndef PANDO_SRC_BENCH_RANDOM_TOKENS_H_
#define PANDO_SRC_BENCH_RANDOM_TOKENS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/base/random.h"

namespace pando {

class RandomTokens {
 public:
  // `token_floats` is the size of a token's keys, and of its values. At most `num_tokens` are asked for at once.
  RandomTokens(int64_t token_floats, int64_t num_tokens)
      : token_floats_(token_floats),
        piece_tokens_(std::min(num_tokens, std::max<int64_t>(1, kPieceFloats / token_floats))),
        floats_(static_cast<size_t>(piece_tokens_ * token_floats_ + kKeyPlaces * kPlaceFloats)) {
    Random random(1);
    for (float& value : floats_) value = random.Normal();
  }

  // The most tokens of a piece.
  int64_t piece_tokens() const { return piece_tokens_; }

  // [num_tokens][token_floats]
  std::span<const float> Keys(int64_t piece, int64_t num_tokens) const {
    return Window(piece % kKeyPlaces, num_tokens);
  }
  std::span<const float> Values(int64_t piece, int64_t num_tokens) const {
    return Window(piece % kValuePlaces, num_tokens);
  }

 private:
  static constexpr int64_t kPieceFloats = int64_t{1} << 20;
  static constexpr int64_t kKeyPlaces = 1021;
  static constexpr int64_t kValuePlaces = 1019;
  static constexpr int64_t kPlaceFloats = 3;  // not a divisor of a head dim: no head gets what another one had

  std::span<const float> Window(int64_t place, int64_t num_tokens) const {
    return std::span(floats_).subspan(static_cast<size_t>(place * kPlaceFloats),
                                      static_cast<size_t>(num_tokens * token_floats_));
  }

  int64_t token_floats_;
  int64_t piece_tokens_;
  std::vector<float> floats_;
};

}  // namespace pando

#endif  // PANDO_SRC_BENCH_RANDOM_TOKENS_H_

// The forward pass in the plainest way: float64, weights as plain numbers, every token from the start, exact softmax.
// What the Transformer computes must be this, but for rounding.
//
//   std::vector<double> logits = ReferenceLogits(model, tokens);                              // [tokens][vocabulary]
//   std::vector<double> noisy = ReferenceLogits(model, tokens, {.weights = 0x1p-19});
//
// How much rounding may matter is found by trying. A product of a row of `columns` floats, rounded at each step, is the
// exact product of weights that are each changed by at most (columns / 16 + 5) * 2^-24 of themselves: 16 chains of
// columns / 16 fused steps, and 4 additions of chains (backward error). Activations of 8 bits move a value by half a
// step, 1 / 254 of its block's largest; keys and values are rounded to their type. Noise of that size, put into the
// reference, shows how far the logits may move.
#ifndef PANDO_SRC_MODEL_TESTING_REFERENCE_FORWARD_H_
#define PANDO_SRC_MODEL_TESTING_REFERENCE_FORWARD_H_

#include <cstdint>
#include <span>
#include <vector>

#include "pando/kv_type.h"
#include "src/model/model.h"

namespace pando::test_support {

struct ReferenceNoise {
  double weights = 0;             // each weight is multiplied by 1 + a random number of up to this size
  bool activations = false;       // what a quantised matrix multiplies moves by up to half a step of 8 bits
  KvType kv_type = KvType::kF32;  // keys and values move by up to half a step of this type
  uint64_t seed = 1;
};

std::vector<double> ReferenceLogits(const Model& model, std::span<const int32_t> tokens,
                                    const ReferenceNoise& noise = {});

}  // namespace pando::test_support

#endif  // PANDO_SRC_MODEL_TESTING_REFERENCE_FORWARD_H_

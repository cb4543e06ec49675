// Sampler: picks the next token from logits. The same logits, options and seed give the same tokens on every machine.
//
//   Sampler sampler({.temperature = 0.8, .seed = 7});
//   const int32_t token = sampler.Sample(logits, history);
//
// In this order, each step on what the one before left: the repeat penalty, top-k, top-p, min-p, temperature, the draw.
#ifndef PANDO_SRC_ENGINE_SAMPLER_H_
#define PANDO_SRC_ENGINE_SAMPLER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "pando/generation.h"
#include "pando/status.h"
#include "src/base/random.h"

namespace pando {

Status ValidateSamplerOptions(const SamplerOptions& options);

class Sampler {
 public:
  explicit Sampler(const SamplerOptions& options) : options_(options), random_(options.seed) {}

  // `history`: the sequence's tokens so far, prompt included. A NaN is never picked; of equal logits the lower token
  // comes first.
  int32_t Sample(std::span<const float> logits, std::span<const int32_t> history);

  // Where its stream of random numbers is, and back: with equal options it then goes on as the other sampler would.
  uint64_t random_state() const { return random_.state(); }
  void set_random_state(uint64_t state) { random_ = Random(state); }

 private:
  struct Candidate {
    float logit;
    int32_t token;
  };

  void Collect(std::span<const float> logits, std::span<const int32_t> history);
  void KeepTopK();
  void KeepTopP();
  void KeepMinP();
  int32_t Draw();

  const SamplerOptions options_;
  Random random_;
  std::vector<Candidate> candidates_;
  std::vector<double> weights_;
};

}  // namespace pando

#endif  // PANDO_SRC_ENGINE_SAMPLER_H_

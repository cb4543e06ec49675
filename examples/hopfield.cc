// A modern Hopfield network that remembers by attention.
//
// The stored patterns are both the keys and the values; the state x is the query. The network's energy is
//
//   E(x) = -lse(beta, X x) / beta + x . x / 2 + log(num_patterns) / beta + max |pattern|^2 / 2  >=  0
//
// where lse(beta, X x) = log sum_a exp(beta x . pattern_a) is the attention energy F(0) of pando/energy.h. Replacing x
// by the attention output, the gradient of F, lowers E by at least |step|^2 / 2. A corrupted pattern thus rolls down to
// the stored one.
//
// The patterns are sharded over the slots of the canonical tree, as they would be over devices. The program runs the
// same retrieval on 1, 3 and 8 shards and exits with 1 if the energy ever rises, if the bits differ, or if the pattern
// is not found.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <utility>
#include <vector>

#include "pando/energy.h"

namespace {

constexpr size_t kDim = 64;
constexpr size_t kNumPatterns = 200;  // 13 chunks of 16: three of the 16 slots stay empty, which changes nothing
constexpr double kBeta = 0.25;
constexpr size_t kNumFlips = 16;
constexpr size_t kMaxSteps = 40;
// The energy falls by at least half the square of a step: down to here the table shows every fall.
constexpr double kSmallestStep = 1e-4;
constexpr pando::TreeShape kShape{.num_slots = 16, .chunk_tokens = 16};

struct Memory {
  std::vector<double> patterns;  // [kNumPatterns][kDim], each value +1 or -1
  std::vector<double> Pattern(size_t i) const {
    return {patterns.begin() + static_cast<std::ptrdiff_t>(i * kDim),
            patterns.begin() + static_cast<std::ptrdiff_t>((i + 1) * kDim)};
  }
};

// SplitMix64: the same numbers on every machine.
class Coin {
 public:
  explicit Coin(uint64_t seed) : state_(seed) {}
  bool Heads(double probability) { return static_cast<double>(NextBits() >> 11) * 0x1p-53 < probability; }

 private:
  uint64_t NextBits() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  uint64_t state_;
};

Memory StoreRandomPatterns(Coin& coin) {
  Memory memory{std::vector<double>(kNumPatterns * kDim)};
  for (double& value : memory.patterns) value = coin.Heads(0.5) ? 1 : -1;
  return memory;
}

// Flips `num_flips` of the values: each with the probability that leaves exactly that many in the end.
std::vector<double> Corrupt(std::vector<double> pattern, size_t num_flips, Coin& coin) {
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (!coin.Heads(static_cast<double>(num_flips) / static_cast<double>(pattern.size() - i))) continue;
    pattern[i] = -pattern[i];
    --num_flips;
  }
  return pattern;
}

double Dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// Ends the program where the library reports an error: in an example all of them are bugs.
template <typename T>
T ValueOrExit(pando::Result<T> result) {
  if (result.ok()) return std::move(result).value();
  std::fprintf(stderr, "hopfield: %s\n", result.status().message().c_str());
  std::exit(1);
}

// Attention of the state over all patterns. Each shard sees only its own slots; the forests are joined from the right,
// but any order of joining neighbours would do.
pando::EnergyView Attend(const Memory& memory, std::span<const double> state, int64_t num_shards) {
  const pando::EnergyProblem problem{
      .query = state, .keys = memory.patterns, .values = memory.patterns, .scale = kBeta};
  pando::EnergyForest all{.shape = kShape, .range = {kShape.num_slots, kShape.num_slots}, .states = {}};
  for (int64_t shard = num_shards - 1; shard >= 0; --shard) {
    const pando::SlotRange slots{shard * kShape.num_slots / num_shards, (shard + 1) * kShape.num_slots / num_shards};
    const pando::EnergyForest mine = ValueOrExit(pando::EnergyOfSlots(problem, /*zeta=*/{}, kShape, slots));
    all = ValueOrExit(pando::JoinEnergies(mine, all));
  }
  return ValueOrExit(pando::FinishEnergy(all));
}

double NetworkEnergy(double attention_energy, std::span<const double> state) {
  const double constant = std::log(static_cast<double>(kNumPatterns)) / kBeta + kDim / 2.0;
  return -attention_energy / kBeta + Dot(state, state) / 2 + constant;
}

uint64_t Fingerprint(const pando::EnergyView& view) {
  uint64_t hash = std::bit_cast<uint64_t>(view.energy);
  for (const double value : view.gradient) hash = (hash ^ std::bit_cast<uint64_t>(value)) * 0x100000001b3u;
  for (const double value : view.variance) hash = (hash ^ std::bit_cast<uint64_t>(value)) * 0x100000001b3u;
  return hash ^ hash >> 32;
}

struct Step {
  double energy;
  double overlap;  // with the pattern sought: 1 when found
  double spread;   // mean standard deviation of the output: how undecided the attention still is
  double length;   // |attention - state|
  uint64_t fingerprint;
};

std::vector<Step> Retrieve(const Memory& memory, std::vector<double> state, std::span<const double> target,
                           int64_t num_shards) {
  std::vector<Step> steps;
  do {
    const pando::EnergyView view = Attend(memory, state, num_shards);
    Step step{.energy = NetworkEnergy(view.energy, state),
              .overlap = Dot(state, target) / std::sqrt(Dot(state, state) * Dot(target, target)),
              .spread = 0,
              .length = 0,
              .fingerprint = Fingerprint(view)};
    for (size_t i = 0; i < kDim; ++i) {
      step.spread += std::sqrt(view.variance[i]) / kDim;
      step.length = std::hypot(step.length, view.gradient[i] - state[i]);
    }
    steps.push_back(step);
    state = view.gradient;
  } while (steps.back().length > kSmallestStep && steps.size() < kMaxSteps);
  return steps;
}

// What must hold, over all retrievals.
struct Verdict {
  bool energy_falls = true;
  bool same_bits = true;
  bool found = true;
};

// Whether step i was taken by all runs, with the same bits.
bool SameBitsAt(const std::vector<std::vector<Step>>& runs, size_t i) {
  return std::ranges::all_of(runs, [&](const std::vector<Step>& steps) {
    return i < steps.size() && i < runs[0].size() && steps[i].fingerprint == runs[0][i].fingerprint;
  });
}

void RetrieveAndCheck(const Memory& memory, size_t pattern_idx, Coin& coin, Verdict& verdict) {
  const std::vector<double> target = memory.Pattern(pattern_idx);
  const std::vector<double> start = Corrupt(target, kNumFlips, coin);
  std::vector<std::vector<Step>> runs;
  for (const int64_t num_shards : {1, 3, 8}) runs.push_back(Retrieve(memory, start, target, num_shards));

  std::printf("\npattern %zu, %zu of %zu values flipped\n", pattern_idx, kNumFlips, kDim);
  std::printf("step         energy  overlap   spread  fingerprint       1, 3 and 8 shards\n");
  const std::vector<Step>& steps = runs[0];
  for (size_t i = 0; i < steps.size(); ++i) {
    const bool same_bits = SameBitsAt(runs, i);
    std::printf("%4zu  %13.9f  %7.5f  %7.5f  %016llx  %s\n", i, steps[i].energy, steps[i].overlap, steps[i].spread,
                static_cast<unsigned long long>(steps[i].fingerprint), same_bits ? "equal" : "DIFFERENT");
    verdict.same_bits = verdict.same_bits && same_bits;
    verdict.energy_falls = verdict.energy_falls && (i == 0 || steps[i].energy < steps[i - 1].energy);
  }
  verdict.found = verdict.found && steps.back().overlap > 0.999;
}

}  // namespace

int main() {
  Coin coin(2024);
  const Memory memory = StoreRandomPatterns(coin);
  std::printf("%zu patterns of %zu values stored in %lld slots\n", kNumPatterns, kDim,
              static_cast<long long>(kShape.num_slots));
  Verdict verdict;
  for (const size_t pattern_idx : {17, 96, 199}) RetrieveAndCheck(memory, pattern_idx, coin, verdict);
  std::printf("\nenergy fell at every step: %s, same bits on 1, 3 and 8 shards: %s, patterns found: %s\n",
              verdict.energy_falls ? "yes" : "NO", verdict.same_bits ? "yes" : "NO", verdict.found ? "yes" : "NO");
  return verdict.energy_falls && verdict.same_bits && verdict.found ? 0 : 1;
}

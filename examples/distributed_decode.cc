// A small engine over a cache that ranks share: it generates tokens, and every rank has every result.
//
//   distributed_decode [RANKS]                 the ranks are threads of this process (3 unless given)
//   mpirun -n 4 distributed_decode             each process is a rank
//
// The model is a toy of two layers: what attention puts out in one layer is the next one's query, key and value, and so
// on from token to token. A rank that got other bits than the rest would thus lead all of them to another end. Rank 0
// prints the fingerprint of all outputs and log-sum-exps, which is the same line on any number of ranks.
// examples/decode.c does the same in C, with the same numbers.
#include <array>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "pando/attention.h"
#include "pando/communicator.h"

namespace {

constexpr int64_t kLayers = 2;
constexpr int64_t kHeads = 8;
constexpr int64_t kKvHeads = 2;
constexpr int64_t kHeadDim = 64;
constexpr size_t kTokenFloats = kKvHeads * kHeadDim;  // of a key or a value
constexpr size_t kPromptTokens = 5000;                // more than 64 slots of 64 tokens: every rank gets some
constexpr int kSteps = 8;

// Numbers in [-1, 1), the same on every machine and in every language.
std::vector<float> Numbers(size_t count, uint32_t seed) {
  std::vector<float> numbers(count);
  for (float& number : numbers) {
    seed = seed * 1664525u + 1013904223u;
    number = static_cast<float>(seed >> 8) * 0x1p-23f - 1.0f;
  }
  return numbers;
}

// FNV-1a over the bits.
uint64_t Fingerprint(uint64_t so_far, std::span<const float> values) {
  for (const float value : values) so_far = (so_far ^ std::bit_cast<uint32_t>(value)) * 0x100000001b3u;
  return so_far;
}

// What every rank does: the same calls with the same numbers.
pando::Status Generate(pando::Communicator& communicator) {
  pando::Result<pando::Attention> attention = pando::Attention::Create(
      communicator, {.num_heads = kHeads, .num_kv_heads = kKvHeads, .head_dim = kHeadDim, .num_layers = kLayers});
  if (!attention.ok()) return attention.status();

  pando::Status status;
  const int64_t sequence = attention->AddSequence();
  for (int64_t layer = 0; layer < kLayers && status.ok(); ++layer) {
    const auto seed = static_cast<uint32_t>(2 * layer);
    status = attention->Append(layer, sequence, Numbers(kPromptTokens * kTokenFloats, seed),
                               Numbers(kPromptTokens * kTokenFloats, seed + 1));
  }

  uint64_t fingerprint = 0xcbf29ce484222325u;
  std::vector<float> x = Numbers(kHeads * kHeadDim, 2024);
  std::vector<float> output(x.size());
  std::array<float, kHeads> lse{};
  for (int64_t i = 0; i < kSteps * kLayers && status.ok(); ++i) {
    const int64_t layer = i % kLayers;
    const std::span<const float> k = std::span(x).first(kTokenFloats);
    const std::span<const float> v = std::span(x).last(kTokenFloats);
    status = attention->Append(layer, sequence, k, v);
    if (status.ok()) status = attention->Decode(layer, {sequence, 1}, x, output, lse);
    fingerprint = Fingerprint(Fingerprint(fingerprint, output), lse);
    // Attention of many random values is near zero: scaled back, it still tells tokens apart.
    for (size_t j = 0; j < x.size(); ++j) x[j] = 32 * output[j];
  }
  if (status.ok() && communicator.rank() == 0)
    std::printf("%d tokens, fingerprint %016llx\n", kSteps, static_cast<unsigned long long>(fingerprint));
  return status;
}

// Without waiting for other ranks, which MPI would do at a normal end.
[[noreturn]] void Leave(const std::string& sentence) {
  std::fprintf(stderr, "distributed_decode: %s\n", sentence.c_str());
  std::_Exit(1);
}

pando::Status GenerateAsProcess() {
  pando::Result<pando::Communicator> communicator = pando::Communicator::Mpi({.on_stuck = Leave});
  if (!communicator.ok()) return communicator.status();
  pando::Status status = Generate(*communicator);
  if (!status.ok()) Leave(status.message());  // while the communicator is still there
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t num_ranks = argc > 1 ? std::strtoll(argv[1], nullptr, 10) : 3;
  const pando::Status status =
      pando::Communicator::StartedByMpirun() ? GenerateAsProcess() : pando::RunInProcess(num_ranks, {}, Generate);
  if (!status.ok()) Leave(status.message());
  return 0;
}

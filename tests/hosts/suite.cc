// One rank of the tests across hosts; without mpirun, the one rank to compare with.
//
//   hosts_suite bits [--load PREFIX] [--save PREFIX]
//   hosts_suite steps [--strategy tree] [--steps 100] [--context 4096] [--timeout-ms 30000]
//
// `bits` prints fingerprints of outputs and log-sum-exps: for every KV type, after everything that moves the cache
// about, for every strategy. `steps` makes decode steps of Llama-3.1-8B's shape (f16) and nothing else, so that what
// goes over the wires is theirs. Rank 0 prints, one fact per line:
//
//   nodes 0 0 1 1                              the node of each rank
//   bits f16 rebalanced two-level 0123456789abcdef
//   running                                    after the first step
//   schedule butterfly                         of the last step
//   median_us 812.5                            of the steps
//   fastest_us 640.2
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pando/attention.h"
#include "src/base/clock.h"
#include "src/base/errors.h"
#include "src/base/fingerprint.h"
#include "src/base/random.h"
#include "src/ranks/rank_access.h"

namespace pando {
namespace {

using Arguments = std::map<std::string, std::string>;

std::string Get(const Arguments& arguments, const std::string& name, const std::string& otherwise) {
  const auto found = arguments.find(name);
  return found == arguments.end() ? otherwise : found->second;
}

template <typename... Parts>
void Print(const Communicator& communicator, fmt::format_string<Parts...> format, Parts&&... parts) {
  if (communicator.rank() != 0) return;
  fmt::print("{}\n", fmt::format(format, std::forward<Parts>(parts)...));
  std::fflush(stdout);
}

std::vector<float> Normals(int64_t count, uint64_t seed) {
  Random random(seed);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = random.Normal();
  return values;
}

// ---- bits

constexpr int64_t kHeads = 6;
constexpr int64_t kKvHeads = 2;
constexpr int64_t kHeadDim = 64;
// By sequence. The first fills every slot and begins a second round; of the second most ranks have nothing.
constexpr int64_t kTokens[] = {5001, 700};
constexpr SequenceQueries kDecodeQueries[] = {{0, 1}, {1, 3}};
constexpr SequenceQueries kPrefillQueries = {0, 37};

Status Fill(Attention& attention) {
  for (const int64_t num_tokens : kTokens) {
    const int64_t sequence = attention.AddSequence();
    const int64_t num_floats = num_tokens * kKvHeads * kHeadDim;
    Status status = attention.Append(0, sequence, Normals(num_floats, 1), Normals(num_floats, 2));
    if (!status.ok()) return status;
  }
  return {};
}

Result<uint64_t> FingerprintOf(Attention& attention) {
  const auto fingerprint = [&](int64_t num_queries, const auto& step, uint64_t seed) -> Result<uint64_t> {
    const int64_t num_rows = num_queries * kHeads;
    std::vector<float> output(static_cast<size_t>(num_rows * kHeadDim));
    std::vector<float> lse(static_cast<size_t>(num_rows));
    if (Status status = step(Normals(num_rows * kHeadDim, 3), output, lse); !status.ok()) return status;
    return Fingerprint(lse, Fingerprint(output, seed));
  };
  const Result<uint64_t> decoded = fingerprint(
      kDecodeQueries[0].num_queries + kDecodeQueries[1].num_queries,
      [&](const auto& q, auto& output, auto& lse) { return attention.Decode(0, kDecodeQueries, q, output, lse); }, 0);
  if (!decoded.ok()) return decoded.status();
  return fingerprint(
      kPrefillQueries.num_queries,
      [&](const auto& q, auto& output, auto& lse) { return attention.Prefill(0, kPrefillQueries, q, output, lse); },
      *decoded);
}

Status ExpectSameOnAllRanks(Communicator& communicator, uint64_t mine) {
  std::vector<uint64_t> all(static_cast<size_t>(communicator.size()));
  Status status =
      TransportOf(communicator).AllGather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  if (!status.ok()) return status;
  if (std::all_of(all.begin(), all.end(), [&](uint64_t other) { return other == mine; })) return {};
  return Failed("the ranks have different bits: {:016x}", fmt::join(all, ", "));
}

// Prints the fingerprints of every strategy for a cache in a certain state.
Status PrintBits(Communicator& communicator, Attention& attention, KvType type, std::string_view state) {
  for (const char* strategy : {"tree", "butterfly", "two-level", "direct", "reduce-scatter", "allreduce", "ring"}) {
    if (Status status = attention.SetStrategy(strategy); !status.ok()) return status;
    const Result<uint64_t> fingerprint = FingerprintOf(attention);
    if (!fingerprint.ok()) return fingerprint.status();
    if (Status status = ExpectSameOnAllRanks(communicator, *fingerprint); !status.ok()) return status;
    Print(communicator, "bits {} {} {} {:016x}", KvTypeName(type), state, strategy, *fingerprint);
  }
  return {};
}

// 1, 2, 3 and on; of several ranks the last gets nothing.
std::vector<double> UnevenWeights(const Communicator& communicator) {
  std::vector<double> weights;
  for (int64_t rank = 0; rank < communicator.size(); ++rank) weights.push_back(static_cast<double>(rank + 1));
  if (weights.size() > 1) weights.back() = 0;
  return weights;
}

Status RunBitsOf(Communicator& communicator, const Arguments& arguments, KvType type) {
  const AttentionOptions options = {.num_heads = kHeads,
                                    .num_kv_heads = kKvHeads,
                                    .head_dim = kHeadDim,
                                    .k_type = type,
                                    .v_type = type,
                                    .rank_weights = UnevenWeights(communicator),
                                    .num_threads = 1};
  Result<Attention> attention = Attention::Create(communicator, options);
  if (!attention.ok()) return attention.status();
  const auto after = [&](std::string_view state, const Status& status) {
    return status.ok() ? PrintBits(communicator, *attention, type, state) : status;
  };
  if (Status status = after("uneven", Fill(*attention)); !status.ok()) return status;
  const std::vector<double> equal(static_cast<size_t>(communicator.size()), 1.0);
  if (Status status = after("rebalanced", attention->Rebalance(equal)); !status.ok()) return status;
  if (arguments.contains("--save")) {
    const std::string prefix = fmt::format("{}.{}", arguments.at("--save"), KvTypeName(type));
    if (Status status = attention->Save(prefix); !status.ok()) return status;
  }
  if (!arguments.contains("--load")) return {};
  const std::string prefix = fmt::format("{}.{}", arguments.at("--load"), KvTypeName(type));
  return after("loaded", attention->Load(prefix));
}

Status RunBits(Communicator& communicator, const Arguments& arguments) {
  for (const KvType type : {KvType::kF32, KvType::kF16, KvType::kBF16, KvType::kQ8_0}) {
    if (Status status = RunBitsOf(communicator, arguments, type); !status.ok()) return status;
  }
  return {};
}

// ---- steps

// The same tokens again and again: neither time nor bytes depend on what they are.
Status FillWith(Attention& attention, const AttentionOptions& options, int64_t num_tokens) {
  constexpr int64_t kBlockTokens = 1024;
  const int64_t token_floats = options.num_kv_heads * options.head_dim;
  const std::vector<float> block = Normals(kBlockTokens * token_floats, 1);
  const int64_t sequence = attention.AddSequence();
  if (Status status = attention.Reserve(num_tokens); !status.ok()) return status;
  for (int64_t begin = 0; begin < num_tokens; begin += kBlockTokens) {
    const int64_t count = std::min(kBlockTokens, num_tokens - begin);
    const std::span tokens = std::span(block).first(static_cast<size_t>(count * token_floats));
    if (Status status = attention.Append(0, sequence, tokens, tokens); !status.ok()) return status;
  }
  return {};
}

Status RunSteps(Communicator& communicator, const Arguments& arguments) {
  const AttentionOptions options = {.num_heads = 32,
                                    .num_kv_heads = 8,
                                    .head_dim = 128,
                                    .strategy = Get(arguments, "--strategy", "tree"),
                                    .num_threads = 1};
  Result<Attention> attention = Attention::Create(communicator, options);
  if (!attention.ok()) return attention.status();
  Status status = FillWith(*attention, options, std::stoll(Get(arguments, "--context", "4096")));
  if (!status.ok()) return status;
  const std::vector<float> q = Normals(options.num_heads * options.head_dim, 2);
  std::vector<float> output(q.size());
  std::vector<double> seconds(static_cast<size_t>(std::stoll(Get(arguments, "--steps", "100"))));
  if (status = communicator.Barrier(); !status.ok()) return status;
  for (size_t step = 0; step < seconds.size(); ++step) {
    const double start = NowSeconds();
    if (status = attention->Decode(0, {0, 1}, q, output); !status.ok()) return status;
    seconds[step] = NowSeconds() - start;
    if (step == 0) Print(communicator, "running");
  }
  if (seconds.empty()) return {};
  std::sort(seconds.begin(), seconds.end());
  Print(communicator, "schedule {}", attention->last_step().schedule);
  Print(communicator, "median_us {:.1f}", seconds[seconds.size() / 2] * 1e6);
  Print(communicator, "fastest_us {:.1f}", seconds.front() * 1e6);
  return {};
}

// ----

// Leaves at once: MPI would wait for ranks that do not come.
[[noreturn]] void Leave(const std::string& sentence) {
  fmt::print(stderr, "{}\n", sentence);
  _exit(1);
}

Result<Communicator> MakeCommunicator(const Arguments& arguments) {
  if (!Communicator::StartedByMpirun()) return Communicator::Alone();
  const std::chrono::milliseconds timeout(std::stoll(Get(arguments, "--timeout-ms", "30000")));
  return Communicator::Mpi({.timeout = timeout, .on_stuck = Leave});
}

Status Run(const std::string& mode, const Arguments& arguments) {
  Result<Communicator> communicator = MakeCommunicator(arguments);
  if (!communicator.ok()) Leave(communicator.status().message());
  Print(*communicator, "nodes {}", fmt::join(TransportOf(*communicator).node_of_rank(), " "));
  Status status = Failed("'{}' is not bits or steps", mode);
  if (mode == "bits") status = RunBits(*communicator, arguments);
  if (mode == "steps") status = RunSteps(*communicator, arguments);
  if (!status.ok()) Leave(status.message());
  return status;
}

}  // namespace
}  // namespace pando

int main(int argc, char** argv) {
  pando::Arguments arguments;
  for (int i = 2; i + 1 < argc; i += 2) arguments[argv[i]] = argv[i + 1];
  return pando::Run(argc > 1 ? argv[1] : "", arguments).ok() ? 0 : 1;
}

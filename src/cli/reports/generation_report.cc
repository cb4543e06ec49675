#include "src/cli/reports/generation_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace pando::cli {
namespace {

using Json = nlohmann::ordered_json;

double Hundredths(double value) { return std::nearbyint(value * 100) / 100; }

Json Milliseconds(double seconds) { return std::nearbyint(seconds * 1e6) / 1e3; }

Json RankJson(size_t rank, const RankFigures& figures) {
  const TransformerTimes& times = figures.times;
  return {{"rank", rank},
          {"total_ms", Milliseconds(times.total_seconds)},
          {"compute_ms", Milliseconds(times.total_seconds - times.merge_seconds - times.gather_seconds)},
          {"attention_ms", Milliseconds(times.attention_seconds)},
          {"merge_ms", Milliseconds(times.merge_seconds)},
          {"gather_ms", Milliseconds(times.gather_seconds)},
          {"kv_bytes", figures.memory.used}};
}

double ReadGbPerSecond(const GenerationReport& report) {
  return report.bytes_read_per_token * report.times.decode_tokens_per_s() / 1e9;
}

}  // namespace

std::string RenderGenerationJson(const GenerationReport& report) {
  const GeneratorTimes& times = report.times;
  Json ranks = Json::array();
  for (size_t rank = 0; rank < report.ranks.size(); ++rank) ranks.push_back(RankJson(rank, report.ranks[rank]));
  const Json json = {
      {"text", report.text},
      {"tokens", report.tokens},
      {"stop_reason", report.stop_reason},
      {"logits_fingerprint", fmt::format("{:016x}", report.fingerprint)},
      {"timings",
       {{"prompt_n", times.prompt_tokens},
        {"prompt_ms", Milliseconds(times.prompt_seconds)},
        {"prompt_per_second", Hundredths(times.prompt_tokens_per_s())},
        // Not report.tokens: the first of them was picked from the prompt's logits.
        {"predicted_n", times.decode_tokens},
        {"predicted_ms", Milliseconds(times.decode_seconds)},
        {"predicted_per_second", Hundredths(times.decode_tokens_per_s())},
        {"read_gb_per_second", Hundredths(ReadGbPerSecond(report))}}},
      {"attention", report.attention},
      {"schedule", report.schedule},
      {"context_tokens", report.context_tokens},
      {"ranks", ranks},
  };
  return json.dump(2) + "\n";
}

std::string SpeedSummary(const GeneratorTimes& times, int64_t num_generated) {
  return fmt::format("prompt {} tokens, {:.1f} tokens/s; generated {} tokens, {:.1f} tokens/s", times.prompt_tokens,
                     times.prompt_tokens_per_s(), num_generated, times.decode_tokens_per_s());
}

std::string GenerationSummary(const GenerationReport& report) {
  const GeneratorTimes& times = report.times;
  std::string line = SpeedSummary(times, static_cast<int64_t>(report.tokens.size()));
  if (times.decode_tokens > 0) {
    line += fmt::format(", reading {:.1f} GB/s", ReadGbPerSecond(report));
    if (report.read_gb_per_s.has_value()) line += fmt::format(" of the machine's {:.1f}", *report.read_gb_per_s);
  }
  TransformerTimes slowest;
  for (const RankFigures& figures : report.ranks) {
    slowest.total_seconds = std::max(slowest.total_seconds, figures.times.total_seconds);
    slowest.merge_seconds = std::max(slowest.merge_seconds, figures.times.merge_seconds);
    slowest.gather_seconds = std::max(slowest.gather_seconds, figures.times.gather_seconds);
  }
  const double compute = slowest.total_seconds - slowest.merge_seconds - slowest.gather_seconds;
  line += fmt::format("; {} rank{} ({}): {:.0f} ms compute, {:.0f} ms merge, {:.0f} ms gather", report.ranks.size(),
                      report.ranks.size() == 1 ? "" : "s", report.schedule, std::max(0.0, compute) * 1e3,
                      slowest.merge_seconds * 1e3, slowest.gather_seconds * 1e3);
  return line;
}

}  // namespace pando::cli

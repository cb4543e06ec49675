#include "src/cli/sampling_flags.h"

#include <optional>
#include <random>

#include "src/cli/command.h"
#include "src/cli/decimal_list.h"
#include "src/cli/size_list.h"

namespace pando::cli {
namespace {

// Reads numbers one after the other and keeps the first complaint.
class Numbers {
 public:
  double Decimal(std::string_view option, const std::string& text, DecimalRange range) {
    return Keep(ParseDecimal(option, text, range), 0.0);
  }
  int64_t Whole(std::string_view option, const std::string& text, SizeRange range) {
    return Keep(ParseSize(option, text, range), int64_t{0});
  }
  std::optional<int64_t> WholeOrNone(std::string_view option, const std::string& text, SizeRange range) {
    return Keep(ParseSizeOrNone(option, text, range), std::optional<int64_t>());
  }
  const Status& status() const { return status_; }

 private:
  template <typename T>
  T Keep(const Result<T>& result, T otherwise) {
    if (result.ok()) return *result;
    if (status_.ok()) status_ = result.status();
    return otherwise;
  }

  Status status_;
};

uint64_t RandomSeed() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

}  // namespace

void AddSamplingOptions(CLI::App& app, SamplingFlags& flags) {
  AddTextOption(app, "--temp,--temperature", "T", flags.temperature,
                "How much chance there is in picking tokens; 0: none");
  AddTextOption(app, "--top-k", "N", flags.top_k, "Only among the N likeliest tokens; 0: all");
  AddTextOption(app, "--top-p", "P", flags.top_p, "Only among the likeliest that together reach P; 1: all");
  AddTextOption(app, "--min-p", "P", flags.min_p, "Only those at least P times as likely as the likeliest; 0: all");
  AddTextOption(app, "--repeat-penalty", "X", flags.repeat_penalty, "Makes tokens that occurred less likely; 1: no");
  AddTextOption(app, "--repeat-last-n", "N", flags.repeat_last_n, "How many tokens back the penalty looks");
  AddTextOption(app, "-s,--seed", "N", flags.seed,
                "Of the chance: the same seed gives the same text; -1: another each time");
}

Result<int64_t> ParseMostTokens(const std::string& text) {
  const Result<std::optional<int64_t>> most = ParseSizeOrNone("-n", text);
  if (!most.ok()) return most.status();
  constexpr int64_t kNoLimit = int64_t{1} << 40;
  return most->value_or(kNoLimit);
}

Result<SamplerOptions> ParseSampling(const SamplingFlags& flags) {
  Numbers numbers;
  SamplerOptions options;
  options.temperature = numbers.Decimal("--temp", flags.temperature, {.min = 0, .max = 1e6});
  options.top_k = numbers.Whole("--top-k", flags.top_k, {.min = 0});
  options.top_p = numbers.Decimal("--top-p", flags.top_p, {.min = 0, .max = 1});
  options.min_p = numbers.Decimal("--min-p", flags.min_p, {.min = 0, .max = 1});
  options.repeat_penalty = numbers.Decimal("--repeat-penalty", flags.repeat_penalty, {.min = 1e-6, .max = 1e6});
  options.repeat_last_n = numbers.Whole("--repeat-last-n", flags.repeat_last_n, {.min = 0});
  const std::optional<int64_t> seed = numbers.WholeOrNone("--seed", flags.seed, {.min = 0, .max = int64_t{1} << 62});
  options.seed = seed.has_value() ? static_cast<uint64_t>(*seed) : RandomSeed();
  if (!numbers.status().ok()) return numbers.status();
  return options;
}

}  // namespace pando::cli

// What a generation came to: for people a summary line, for programs one JSON object.
#ifndef PANDO_SRC_CLI_REPORTS_GENERATION_REPORT_H_
#define PANDO_SRC_CLI_REPORTS_GENERATION_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/engine/engine.h"
#include "src/engine/generator.h"

namespace pando::cli {

struct GenerationReport {
  std::string text;  // generated, without the prompt; UTF-8
  std::vector<int32_t> tokens;
  std::string stop_reason;  // "end", "length", "context", "interrupted"
  uint64_t fingerprint = 0;
  GeneratorTimes times;
  std::vector<RankFigures> ranks;
  std::string attention;
  std::string schedule;
  int64_t context_tokens = 0;           // in the cache at the end
  double bytes_read_per_token = 0;      // of weights, keys and values, at the least, for each token decoded
  std::optional<double> read_gb_per_s;  // of the machine, where it was measured
};

// "fingerprint" as 16 hexadecimal digits: what other reports print too.
std::string RenderGenerationJson(const GenerationReport& report);

// How fast it was, in a line; GenerationSummary goes on with where the time went.
std::string SpeedSummary(const GeneratorTimes& times, int64_t num_generated);
std::string GenerationSummary(const GenerationReport& report);

}  // namespace pando::cli

#endif  // PANDO_SRC_CLI_REPORTS_GENERATION_REPORT_H_

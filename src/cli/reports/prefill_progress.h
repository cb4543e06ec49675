// PrefillProgress: a bar on the terminal while a prompt is read, with tokens per second and the time left. Says nothing
// in a pipe, and nothing for prompts that are read in no time.
#ifndef PANDO_SRC_CLI_REPORTS_PREFILL_PROGRESS_H_
#define PANDO_SRC_CLI_REPORTS_PREFILL_PROGRESS_H_

#include <cstddef>
#include <string>

#include "src/base/clock.h"
#include "src/cli/reports/progress.h"

namespace pando::cli {

// "reading [#####.....] 512 of 1024 tokens, 300 tokens/s, 2 s left"
std::string PrefillLine(size_t done, size_t total, double seconds);

class PrefillProgress {
 public:
  explicit PrefillProgress(size_t total) : total_(total), start_(NowSeconds()) {}

  // Takes the bar away when all are done.
  void Show(size_t done) {
    if (done < total_) {
      progress_.Show(PrefillLine(done, total_, NowSeconds() - start_));
    } else {
      progress_.Clear();
    }
  }

 private:
  size_t total_;
  double start_;
  Progress progress_;
};

}  // namespace pando::cli

#endif  // PANDO_SRC_CLI_REPORTS_PREFILL_PROGRESS_H_

// Progress: one line on stderr that says what is going on, written over in place. In a pipe or a file it says nothing.
#ifndef PANDO_SRC_CLI_REPORTS_PROGRESS_H_
#define PANDO_SRC_CLI_REPORTS_PROGRESS_H_

#include <string_view>

namespace pando::cli {

class Progress {
 public:
  Progress();
  ~Progress() { Clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Show(std::string_view text);

  // Takes the line away. To be called before anything else goes to the terminal.
  void Clear();

 private:
  bool is_terminal_;
  bool is_shown_ = false;
};

}  // namespace pando::cli

#endif  // PANDO_SRC_CLI_REPORTS_PROGRESS_H_

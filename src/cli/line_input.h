// Lines that a person types, or that come through a pipe, with something to do while there are none.
//
//   LineInput input;
//   while (std::optional<std::string> line = input.Next(interval, [&] { engine.KeepAlive(); })) ...
#ifndef PANDO_SRC_CLI_LINE_INPUT_H_
#define PANDO_SRC_CLI_LINE_INPUT_H_

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "pando/status.h"

namespace pando::cli {

class LineInput {
 public:
  // The next line of standard input without its end; nothing at the end of the input, or when a signal came.
  // `while_waiting` is called every `interval`; where it fails the wait ends with its Status.
  Result<std::optional<std::string>> Next(std::chrono::milliseconds interval,
                                          const std::function<Status()>& while_waiting);

 private:
  std::optional<std::string> TakeLine();

  std::string buffer_;
  bool at_end_ = false;
};

}  // namespace pando::cli

#endif  // PANDO_SRC_CLI_LINE_INPUT_H_

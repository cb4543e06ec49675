// StopSequences: finds the end of a text whose pieces come one after the other.
//
//   StopSequences stops({"\n\n", "User:"});
//   Print(stops.Push(piece));          // what cannot be part of a stop sequence any more
//   if (stops.found()) ...             // what follows is dropped
//   Print(stops.Finish());             // what was held back, if none was found
//
// The text ends before the stop sequence that is complete first, and among those before the longest. So the result does
// not depend on how the text is cut into pieces.
#ifndef PANDO_SRC_ENGINE_STOP_SEQUENCES_H_
#define PANDO_SRC_ENGINE_STOP_SEQUENCES_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "pando/status.h"

namespace pando {

// An empty stop sequence would end every text.
Status ValidateStopSequences(const std::vector<std::string>& stops);

class StopSequences {
 public:
  explicit StopSequences(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  std::string Push(const std::string& piece);
  std::string Finish();
  bool found() const { return found_; }

 private:
  // Where the first complete stop sequence begins in held_; npos: there is none.
  size_t FirstStop() const;
  // How many bytes at the end of held_ may be the beginning of a stop sequence.
  size_t NumUndecided() const;

  std::vector<std::string> stops_;
  std::string held_;
  bool found_ = false;
};

}  // namespace pando

#endif  // PANDO_SRC_ENGINE_STOP_SEQUENCES_H_

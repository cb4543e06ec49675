#include "src/engine/stop_sequences.h"

#include <algorithm>

#include "src/base/errors.h"

namespace pando {

Status ValidateStopSequences(const std::vector<std::string>& stops) {
  if (std::ranges::none_of(stops, &std::string::empty)) return Status();
  return InvalidArgument("a stop sequence is empty: each must have at least one byte");
}

size_t StopSequences::FirstStop() const {
  size_t begin = std::string::npos;
  size_t end = std::string::npos;
  for (const std::string& stop : stops_) {
    const size_t found = held_.find(stop);
    if (found == std::string::npos) continue;
    const size_t found_end = found + stop.size();
    if (found_end > end || (found_end == end && found > begin)) continue;
    begin = found;
    end = found_end;
  }
  return begin;
}

size_t StopSequences::NumUndecided() const {
  size_t most = 0;
  for (const std::string& stop : stops_) {
    for (size_t count = std::min(stop.size() - 1, held_.size()); count > most; --count) {
      if (held_.compare(held_.size() - count, count, stop, 0, count) == 0) most = count;
    }
  }
  return most;
}

std::string StopSequences::Push(const std::string& piece) {
  if (found_) return {};
  held_ += piece;
  const size_t stop = FirstStop();
  found_ = stop != std::string::npos;
  const size_t decided = found_ ? stop : held_.size() - NumUndecided();
  std::string text = held_.substr(0, decided);
  held_.erase(0, decided);
  return text;
}

std::string StopSequences::Finish() { return found_ ? std::string() : std::exchange(held_, {}); }

}  // namespace pando

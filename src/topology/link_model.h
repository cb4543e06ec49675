// LinkModel: what a message between two ranks costs, as a few numbers, and how they come from measurements.
//
//   std::vector<PingPongSample> samples = ...;                    // several of each of a few sizes
//   Result<LinkModel> link = FitLinkModel(samples);
//   double seconds = TransferSeconds(*link, 16640);
//
// Pure arithmetic: whoever has a transport measures.
#ifndef PANDO_SRC_TOPOLOGY_LINK_MODEL_H_
#define PANDO_SRC_TOPOLOGY_LINK_MODEL_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "pando/status.h"

namespace pando {

struct LinkModel {
  // One way, of an empty message, from the call that sends it to the return of the one that receives it.
  double latency_seconds = 0;
  double bytes_per_second = 0;  // 0: not measured
  // The parts of the latency that keep the sender and the receiver busy: what each further message of a burst costs.
  double send_overhead_seconds = 0;
  double receive_overhead_seconds = 0;

  bool operator==(const LinkModel&) const = default;
};

// Finite, not negative, a bandwidth above 0. `what` names the link in the message.
Status ValidateLinkModel(const LinkModel& link, std::string_view what);

// latency + bytes / bandwidth: a message alone on its link.
inline double TransferSeconds(const LinkModel& link, int64_t bytes) {
  return link.latency_seconds + static_cast<double>(bytes) / link.bytes_per_second;
}

// One way: half of a round trip.
struct PingPongSample {
  int64_t bytes = 0;
  double seconds = 0;
};

// Latency and bandwidth; the overheads stay 0. The line through the medians of the sizes for which the sum of squared
// relative errors is least: outliers vanish in the medians, and being relative keeps the large sizes from deciding the
// latency. At least two sizes. Where a line would have a negative latency, it goes through the origin; where time does
// not grow with size, the bandwidth is kUnlimitedBytesPerSecond.
Result<LinkModel> FitLinkModel(std::span<const PingPongSample> samples);

inline constexpr double kUnlimitedBytesPerSecond = 1e15;

// Of sending `num_messages` small messages in a row to different peers (or receiving them): until the last is done.
struct BurstSample {
  int64_t num_messages = 0;
  double seconds = 0;
};

// The seconds that each further message of a burst adds, fitted in the same way; never negative.
Result<double> FitOverheadSeconds(std::span<const BurstSample> samples);

}  // namespace pando

#endif  // PANDO_SRC_TOPOLOGY_LINK_MODEL_H_

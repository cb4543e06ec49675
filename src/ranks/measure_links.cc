#include "src/ranks/measure_links.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <span>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "pando/attention_state.h"
#include "src/base/clock.h"
#include "src/base/errors.h"

namespace pando {
namespace {

constexpr std::array<int64_t, 4> kPingBytes = {8, 4 << 10, 64 << 10, 512 << 10};
constexpr int64_t kRounds = 21;       // of each size; the fits take medians
constexpr int64_t kFewestRounds = 3;  // where they are slow
constexpr double kSecondsPerSize = 0.01;
constexpr double kMostSecondsPerSize = 0.08;  // else the size is left out
constexpr int kMaxBurst = 8;
constexpr int64_t kBurstRounds = 9;

// Who is not measured sleeps before it waits for what comes next, for as long as ping-pong takes on most links: ranks
// of MPI look for messages all the time, and where they outnumber the cores the latency would be theirs. Inproc they
// sleep anyway.
void LetOthersMeasure(const Transport& transport) {
  if (transport.name() != "mpi") return;
  std::this_thread::sleep_for(std::chrono::duration<double>(kPingBytes.size() * kSecondsPerSize));
}

// How many rounds there is time for.
int64_t AffordableRounds(double seconds_per_round, int64_t fewest, int64_t most) {
  const double affordable = kSecondsPerSize / std::max(seconds_per_round, 1e-9);
  return std::clamp(static_cast<int64_t>(std::min(affordable, 1e9)), fewest, most);
}

// The faster half of the samples of each size: what else the machine does only ever adds time.
template <typename Sample>
std::vector<Sample> FasterHalf(std::vector<Sample> samples, int64_t Sample::*size) {
  std::ranges::sort(samples, {}, [&](const Sample& sample) { return std::pair(sample.*size, sample.seconds); });
  std::vector<Sample> faster;
  for (size_t begin = 0, end = 0; begin < samples.size(); begin = end) {
    while (end < samples.size() && samples[end].*size == samples[begin].*size) ++end;
    const size_t half = (end - begin + 1) / 2;
    faster.insert(faster.end(), samples.begin() + static_cast<std::ptrdiff_t>(begin),
                  samples.begin() + static_cast<std::ptrdiff_t>(begin + half));
  }
  return faster;
}

// Who measures a level: `hub` with peers[0], and for bursts with all of them. All ranks work out the same.
struct Crew {
  int hub = -1;  // -1: the level does not occur
  std::vector<int> peers;

  bool Contains(int rank) const { return rank == hub || std::ranges::find(peers, rank) != peers.end(); }
};

Crew CrewOf(const RankTopology& topology, LinkLevel level) {
  const auto are_at_level = [&](int a, int b) {
    return a != b &&
           LevelBetween(topology.places[static_cast<size_t>(a)], topology.places[static_cast<size_t>(b)]) == level;
  };
  for (int hub = 0; hub < topology.num_ranks(); ++hub) {
    Crew crew = {.hub = hub, .peers = {}};
    for (int peer = 0; peer < topology.num_ranks() && crew.peers.size() < kMaxBurst; ++peer) {
      if (are_at_level(hub, peer)) crew.peers.push_back(peer);
    }
    if (!crew.peers.empty()) return crew;
  }
  return {};
}

// One level, measured by its crew.
class LevelProbe {
 public:
  LevelProbe(Transport& transport, Crew crew)
      : transport_(transport), crew_(std::move(crew)), buffer_(static_cast<size_t>(kPingBytes.back())) {}

  // `link` is set on the hub. One that could not be fitted stays 0.
  Status Run(LinkModel& link) {
    const bool is_hub = transport_.rank() == crew_.hub;
    PANDO_RETURN_IF_ERROR(is_hub ? Ping() : AnswerPings());
    PANDO_RETURN_IF_ERROR(AgreeOnBursts());
    for (const bool hub_sends : {true, false}) {
      PANDO_RETURN_IF_ERROR(is_hub ? LeadBursts(hub_sends) : FollowBursts(hub_sends));
    }
    if (is_hub) link = Fit();
    return Status();
  }

 private:
  // How many rounds of which size come next; 0 rounds: no more.
  struct Order {
    int64_t bytes = 0;
    int64_t rounds = 0;
  };

  Status Tell(const Order& order) { return transport_.Send(crew_.peers[0], std::as_bytes(std::span(&order, 1))); }

  Result<double> PingRound(size_t bytes) {
    const double start = NowSeconds();
    PANDO_RETURN_IF_ERROR(transport_.Send(crew_.peers[0], {buffer_.data(), bytes}));
    PANDO_RETURN_IF_ERROR(transport_.Receive(crew_.peers[0], {buffer_.data(), bytes}));
    return (NowSeconds() - start) / 2;
  }

  // Two rounds to warm up; the faster one tells how many are worth waiting for.
  Status PingSize(int64_t bytes, double& seconds) {
    PANDO_RETURN_IF_ERROR(Tell({.bytes = bytes, .rounds = 2}));
    for (int i = 0; i < 2; ++i) {
      PANDO_ASSIGN_OR_RETURN(const double round, PingRound(static_cast<size_t>(bytes)));
      seconds = i == 0 ? round : std::min(seconds, round);
    }
    const Order order = {.bytes = bytes, .rounds = AffordableRounds(2 * seconds, kFewestRounds, kRounds)};
    PANDO_RETURN_IF_ERROR(Tell(order));
    for (int64_t i = 0; i < order.rounds; ++i) {
      PANDO_ASSIGN_OR_RETURN(const double round, PingRound(static_cast<size_t>(bytes)));
      pings_.push_back({.bytes = bytes, .seconds = round});
    }
    return Status();
  }

  Status Ping() {
    double seconds = 0;
    for (size_t i = 0; i < kPingBytes.size(); ++i) {
      // A line needs two sizes; a further one only where it can be afforded if all of its time is for its bytes.
      const double expected =
          i == 0 ? 0 : seconds * static_cast<double>(kPingBytes[i]) / static_cast<double>(kPingBytes[i - 1]);
      if (i >= 2 && expected * 2 * (kFewestRounds + 2) > kMostSecondsPerSize) break;
      PANDO_RETURN_IF_ERROR(PingSize(kPingBytes[i], seconds));
    }
    return Tell({});
  }

  Status AnswerPings() {
    if (transport_.rank() != crew_.peers[0]) {
      LetOthersMeasure(transport_);
      return Status();
    }
    while (true) {
      Order order;
      PANDO_RETURN_IF_ERROR(transport_.Receive(crew_.hub, std::as_writable_bytes(std::span(&order, 1))));
      if (order.rounds == 0) return Status();
      const std::span<std::byte> data(buffer_.data(), static_cast<size_t>(order.bytes));
      for (int64_t i = 0; i < order.rounds; ++i) {
        PANDO_RETURN_IF_ERROR(transport_.Receive(crew_.hub, data));
        PANDO_RETURN_IF_ERROR(transport_.Send(crew_.hub, data));
      }
    }
  }

  // The hub tells its peers how many bursts there will be: each costs about a round trip.
  Status AgreeOnBursts() {
    const std::span<std::byte> rounds = std::as_writable_bytes(std::span(&burst_rounds_, 1));
    if (transport_.rank() != crew_.hub) return transport_.Receive(crew_.hub, rounds);
    burst_rounds_ = AffordableRounds(2 * 4 * 2 * SmallestPingSeconds(), 1, kBurstRounds);
    std::vector<SendPart> sends;
    for (const int peer : crew_.peers) sends.push_back({.to = peer, .data = rounds.data(), .bytes = rounds.size()});
    return transport_.Exchange(sends, {});
  }

  // Bursts of 1, 2, 4, 8 small messages, to different peers as far as there are; then the same again.
  template <typename Function>
  Status ForEachBurst(Function function) {
    for (int64_t round = 0; round < burst_rounds_; ++round) {
      for (int count = 1; count <= kMaxBurst; count *= 2) {
        PANDO_RETURN_IF_ERROR(function(count));
      }
    }
    return Status();
  }

  // Messages of a burst of `count` that are the peer's at `index`.
  int ShareOf(int count, size_t index) const {
    const auto num_peers = static_cast<int>(crew_.peers.size());
    return count / num_peers + (static_cast<int>(index) < count % num_peers ? 1 : 0);
  }

  // First every peer of the burst says that it is ready: its receives are posted, or its messages are on their way.
  Status LeadBursts(bool hub_sends) {
    return ForEachBurst([&](int count) {
      std::vector<ReceivePart> ready;
      std::vector<SendPart> sends;
      std::vector<ReceivePart> receives;
      for (size_t i = 0; i < crew_.peers.size(); ++i) {
        const int share = ShareOf(count, i);
        if (share > 0) ready.push_back({.from = crew_.peers[i], .data = nullptr, .bytes = 0});
        for (int j = 0; j < share; ++j) {
          sends.push_back({.to = crew_.peers[i], .data = buffer_.data(), .bytes = 8});
          receives.push_back({.from = crew_.peers[i], .data = buffer_.data() + 8 * receives.size(), .bytes = 8});
        }
      }
      if (hub_sends) receives.clear();
      if (!hub_sends) sends.clear();
      PANDO_RETURN_IF_ERROR(transport_.Exchange({}, ready));
      const double start = NowSeconds();
      PANDO_RETURN_IF_ERROR(transport_.Exchange(sends, receives));
      bursts_[hub_sends ? 0 : 1].push_back({.num_messages = count, .seconds = NowSeconds() - start});
      return Status();
    });
  }

  Status FollowBursts(bool hub_sends) {
    const auto index = static_cast<size_t>(std::ranges::find(crew_.peers, transport_.rank()) - crew_.peers.begin());
    return ForEachBurst([&](int count) {
      const int share = ShareOf(count, index);
      if (share == 0) return Status();
      std::vector<SendPart> sends = {{.to = crew_.hub, .data = nullptr, .bytes = 0}};
      std::vector<ReceivePart> receives;
      for (int j = 0; j < share; ++j) {
        if (hub_sends) receives.push_back({.from = crew_.hub, .data = buffer_.data() + 8 * j, .bytes = 8});
        if (!hub_sends) sends.push_back({.to = crew_.hub, .data = buffer_.data(), .bytes = 8});
      }
      return transport_.Exchange(sends, receives);
    });
  }

  // The fastest of the smallest size.
  double SmallestPingSeconds() const { return FasterHalf(pings_, &PingPongSample::bytes).front().seconds; }

  // The overheads are parts of the latency.
  LinkModel Fit() const {
    const Result<LinkModel> fitted = FitLinkModel(FasterHalf(pings_, &PingPongSample::bytes));
    const Result<double> send = FitOverheadSeconds(FasterHalf(bursts_[0], &BurstSample::num_messages));
    const Result<double> receive = FitOverheadSeconds(FasterHalf(bursts_[1], &BurstSample::num_messages));
    if (!fitted.ok() || !send.ok() || !receive.ok()) return {};
    LinkModel link = *fitted;
    // The bytes of the smallest size take next to no time: a line through noise may say that the latency is less.
    link.latency_seconds = std::max(link.latency_seconds, SmallestPingSeconds());
    const double scale = std::min(1.0, link.latency_seconds / std::max(*send + *receive, 1e-12));
    link.send_overhead_seconds = *send * scale;
    link.receive_overhead_seconds = *receive * scale;
    return link;
  }

  Transport& transport_;
  Crew crew_;
  std::vector<std::byte> buffer_;
  std::vector<PingPongSample> pings_;
  int64_t burst_rounds_ = 0;
  std::array<std::vector<BurstSample>, 2> bursts_;  // of sends, of receives
};

// Measures one level and brings the figures to rank 0.
Status MeasureLevel(Transport& transport, const Crew& crew, LinkModel& link) {
  if (crew.Contains(transport.rank())) {
    PANDO_RETURN_IF_ERROR(LevelProbe(transport, crew).Run(link));
  } else {
    LetOthersMeasure(transport);
  }
  if (crew.hub == 0) return Status();
  if (transport.rank() == crew.hub) return transport.Send(0, std::as_bytes(std::span(&link, 1)));
  if (transport.rank() == 0) return transport.Receive(crew.hub, std::as_writable_bytes(std::span(&link, 1)));
  return Status();
}

// The median over some merges of the states of 32 heads of 128, in cache.
double MergeSecondsPerByte() {
  constexpr size_t kRows = 32;
  constexpr size_t kHeadDim = 128;
  constexpr size_t kNumFloats = AttentionStateSpan::NumFloats(kRows, kHeadDim);
  constexpr int kMerges = 8;
  std::vector<float> into(kNumFloats, 1.0F);
  std::vector<float> from(kNumFloats, 0.5F);
  std::array<double, 21> seconds = {};
  for (double& each : seconds) {
    std::ranges::fill(into, 1.0F);
    const double start = NowSeconds();
    for (int i = 0; i < kMerges; ++i) {
      Merge(AttentionStateSpan{.data = into.data(), .rows = kRows, .head_dim = kHeadDim},
            AttentionStateSpan{.data = from.data(), .rows = kRows, .head_dim = kHeadDim});
    }
    each = NowSeconds() - start;
  }
  std::ranges::sort(seconds);
  return seconds[seconds.size() / 2] / (kMerges * kNumFloats * sizeof(float));
}

}  // namespace

Status MeasureLinks(Transport& transport, RankTopology& topology) {
  static_assert(std::is_trivially_copyable_v<LinkModel>);
  std::array<LinkModel, kNumLinkLevels> links = {};
  for (size_t level = 0; level < kNumLinkLevels; ++level) {
    const Crew crew = CrewOf(topology, static_cast<LinkLevel>(level));
    if (crew.hub < 0) continue;
    // One level after the other: they would disturb each other.
    PANDO_RETURN_IF_ERROR(transport.Barrier());
    PANDO_RETURN_IF_ERROR(MeasureLevel(transport, crew, links[level]));
  }
  PANDO_RETURN_IF_ERROR(transport.Broadcast(0, std::as_writable_bytes(std::span(links))));
  topology.links = links;
  return ValidateLinks(topology);
}

Result<double> MeasureMergeSecondsPerByte(Transport& transport) {
  double seconds_per_byte = 0;
  if (transport.rank() == 0) seconds_per_byte = MergeSecondsPerByte();
  Status status = transport.Broadcast(0, std::as_writable_bytes(std::span(&seconds_per_byte, 1)));
  if (!status.ok()) return status;
  return seconds_per_byte;
}

}  // namespace pando

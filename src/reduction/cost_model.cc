#include "src/reduction/cost_model.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <tuple>

#include "src/base/check.h"

namespace pando {
namespace {

double MergeSeconds(const CostModel& model, int64_t bytes) {
  return static_cast<double>(bytes) * model.merge_seconds_per_byte;
}

// The cores of one node, each free from some time on.
class Cores {
 public:
  explicit Cores(size_t count) : free_at_(count, 0.0) {}

  // Runs for `seconds` from `earliest` or as soon as a core is free, and returns the end. Takes the core that has been
  // idle for the shortest time, so that those idle for longer stay free for work that is simulated later but begins
  // earlier.
  double Run(double earliest, double seconds) {
    double* best = &free_at_.front();
    for (double& free_at : free_at_) {
      const bool is_better = free_at <= earliest ? (*best > earliest || free_at > *best) : free_at < *best;
      if (is_better) best = &free_at;
    }
    *best = std::max(*best, earliest) + seconds;
    return *best;
  }

 private:
  std::vector<double> free_at_;
};

// What is simulated, in bytes.
struct Sizes {
  std::function<int64_t(const Plan& plan, const Move& move)> of_message;
  std::function<int64_t(const Plan& plan)> of_finished_states;
};

// Time passes here: when each rank, link and core is free again. Ranks are positions.
class Simulation {
 public:
  Simulation(std::span<const Plan> plans, const CostModel& model, const Sizes& sizes)
      : plans_(plans),
        model_(model),
        sizes_(sizes),
        free_at_(plans.size(), 0.0),
        node_of_(plans.size()),
        port_of_(plans.size()) {
    const std::vector<RankRange>& nodes = model.order.nodes;
    const auto num_ports = static_cast<size_t>(model.topology.ports_per_node);
    for (size_t node = 0; node < nodes.size(); ++node) {
      for (int position = nodes[node].begin; position < nodes[node].end; ++position) {
        At(node_of_, position) = node;
        At(port_of_, position) = node * num_ports + static_cast<size_t>(position - nodes[node].begin) % num_ports;
      }
    }
    num_node_ports_ = nodes.size() * num_ports;
    out_free_at_.resize(num_node_ports_ + plans.size(), 0.0);
    in_free_at_.resize(num_node_ports_ + plans.size(), 0.0);
    const int limit = model.topology.cores_per_node;
    for (const RankRange& node : nodes) {
      cores_.emplace_back(static_cast<size_t>(limit == 0 ? node.size() : std::min(limit, node.size())));
    }
  }

  double Run() {
    const size_t num_rounds = plans_[0].rounds.size();
    for (size_t round_index = 0; round_index <= num_rounds; ++round_index) {
      for (const Plan& plan : plans_) {
        if (plan.finish_before != round_index) continue;
        Occupy(plan.position, 0, MergeSeconds(model_, sizes_.of_finished_states(plan)));
      }
      if (round_index < num_rounds) ReceiveAll(SendAll(round_index));
    }
    return std::ranges::max(free_at_);
  }

 private:
  struct Message {
    int to;
    size_t in_port;
    double first_byte_at;    // of what is still to come over the receiving port
    double copy_in_seconds;  // on that port; 0 inside a node
    double receive_overhead_seconds;
    double merge_seconds;
    double arrives_at;  // the last byte
  };

  template <typename T>
  static T& At(std::vector<T>& values, int position) {
    return values[static_cast<size_t>(position)];
  }

  const LinkModel& LinkBetween(int a, int b) const {
    const auto place = [&](int position) {
      return model_.topology.places[static_cast<size_t>(model_.order.rank_at[static_cast<size_t>(position)])];
    };
    return model_.topology.link(LevelBetween(place(a), place(b)));
  }

  // What a message from or to a position goes through.
  size_t PortOf(int position, bool is_inside_node) const {
    const auto index = static_cast<size_t>(position);
    return is_inside_node ? num_node_ports_ + index : port_of_[index];
  }

  void Occupy(int position, double earliest, double seconds) {
    double& free_at = At(free_at_, position);
    free_at = std::max(earliest, free_at);
    if (seconds > 0) free_at = cores_[At(node_of_, position)].Run(free_at, seconds);
  }

  Message Send(const Plan& plan, const Move& move, int64_t bytes) {
    const LinkModel& link = LinkBetween(plan.position, move.peer);
    const double copy_seconds = static_cast<double>(bytes) / link.bytes_per_second;
    const double way_seconds =
        std::max(0.0, link.latency_seconds - link.send_overhead_seconds - link.receive_overhead_seconds);
    Message message = {.to = move.peer, .receive_overhead_seconds = link.receive_overhead_seconds};
    if (move.content == Content::kForest) message.merge_seconds = MergeSeconds(model_, bytes);
    const bool is_inside_node = At(node_of_, plan.position) == At(node_of_, move.peer);
    const bool has_own_links = model_.topology.has_own_links;
    if (is_inside_node && !has_own_links) {
      Occupy(plan.position, 0, link.send_overhead_seconds + copy_seconds);
      message.first_byte_at = At(free_at_, plan.position) + way_seconds;
      return message;
    }
    Occupy(plan.position, 0, link.send_overhead_seconds);
    message.in_port = PortOf(move.peer, is_inside_node);
    double& out_free_at = out_free_at_[PortOf(plan.position, is_inside_node)];
    const double awaited_at = has_own_links ? At(round_began_at_, move.peer) : 0;
    const double leaves_at = std::max({At(free_at_, plan.position), awaited_at, out_free_at});
    out_free_at = leaves_at + copy_seconds;
    // The first byte may be received while the last is still being sent.
    message.first_byte_at = leaves_at + way_seconds;
    message.copy_in_seconds = copy_seconds;
    return message;
  }

  // The sends of all ranks. The rank that is free first goes first; among those, the one that has sent the least.
  std::vector<Message> SendAll(size_t round_index) {
    round_began_at_ = free_at_;
    using Turn = std::tuple<double, size_t, int>;  // free at, messages posted, position
    std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns;
    for (const Plan& plan : plans_) turns.emplace(At(free_at_, plan.position), 0, plan.position);
    std::vector<Message> messages;
    while (!turns.empty()) {
      const auto [free_at, num_posted, position] = turns.top();
      turns.pop();
      const Plan& plan = plans_[static_cast<size_t>(position)];
      const std::vector<Move>& sends = plan.rounds[round_index].sends;
      if (num_posted == sends.size()) continue;
      const Move& move = sends[num_posted];
      const int64_t bytes = sizes_.of_message(plan, move);
      if (bytes > 0) messages.push_back(Send(plan, move, bytes));
      turns.emplace(At(free_at_, position), num_posted + 1, position);
    }
    return messages;
  }

  // Takes the messages in, those between nodes over the receiver's port, and joins what a rank has received once
  // the last is there.
  void ReceiveAll(std::vector<Message> messages) {
    std::ranges::stable_sort(messages, {}, &Message::first_byte_at);
    std::vector<double> merge_seconds(plans_.size(), 0.0);
    for (Message& message : messages) {
      message.arrives_at = message.first_byte_at;
      if (message.copy_in_seconds > 0) {
        double& in_free_at = in_free_at_[message.in_port];
        in_free_at = std::max(in_free_at, message.first_byte_at) + message.copy_in_seconds;
        message.arrives_at = in_free_at;
      }
    }
    std::ranges::stable_sort(messages, {}, &Message::arrives_at);
    for (const Message& message : messages) {
      Occupy(message.to, message.arrives_at, message.receive_overhead_seconds);
      At(merge_seconds, message.to) += message.merge_seconds;
    }
    std::vector<int> positions(plans_.size());
    std::iota(positions.begin(), positions.end(), 0);
    std::ranges::stable_sort(positions, {}, [&](int position) { return At(free_at_, position); });
    for (const int position : positions) Occupy(position, 0, At(merge_seconds, position));
  }

  std::span<const Plan> plans_;
  const CostModel& model_;
  const Sizes& sizes_;
  std::vector<double> free_at_;         // by position
  std::vector<double> round_began_at_;  // by position: when its receives were posted
  std::vector<size_t> node_of_;         // by position
  std::vector<size_t> port_of_;         // by position; ports are numbered through all nodes
  size_t num_node_ports_ = 0;
  std::vector<double> out_free_at_;  // by port: those of nodes, then the own links of positions
  std::vector<double> in_free_at_;   // likewise
  std::vector<Cores> cores_;         // by node
};

}  // namespace

double PredictSeconds(std::span<const Plan> plans, const CostModel& model, const MessageShape& shape) {
  PANDO_CHECK(plans.size() == model.topology.places.size() && plans.size() == model.ownership.size());
  const Sizes sizes = {
      .of_message = [&](const Plan& plan,
                        const Move& move) { return MessageBytes(move, plan.row_parts, shape, model.ownership); },
      .of_finished_states =
          [&](const Plan& plan) {
            const int64_t num_rows = RowsOf(plan.finish_rows, plan.row_parts, shape.num_rows).size();
            return static_cast<int64_t>(sizeof(float)) * num_rows * (shape.head_dim + 2);
          }};
  return Simulation(plans, model, sizes).Run();
}

double PredictSecondsOfEqualMessages(std::span<const Plan> plans, const CostModel& model, int64_t message_bytes) {
  PANDO_CHECK(plans.size() == model.topology.places.size());
  const Sizes sizes = {.of_message = [&](const Plan&, const Move&) { return message_bytes; },
                       .of_finished_states = [](const Plan&) { return 0; }};
  return Simulation(plans, model, sizes).Run();
}

double PredictSecondsOfShares(std::span<const Plan> plans, const CostModel& model, int64_t share_bytes) {
  PANDO_CHECK(plans.size() == model.topology.places.size());
  const Sizes sizes = {.of_message = [&](const Plan&, const Move& move) { return share_bytes * move.ranks.size(); },
                       .of_finished_states = [](const Plan&) { return 0; }};
  return Simulation(plans, model, sizes).Run();
}

}  // namespace pando

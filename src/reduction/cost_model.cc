#include "src/reduction/cost_model.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <tuple>

#include "src/base/check.h"
#include "src/reduction/canonical_tree.h"
#include "src/reduction/shared_port.h"

namespace pando {
namespace {

double MergeSeconds(const CostModel& model, int64_t bytes) {
  return static_cast<double>(bytes) * model.merge_seconds_per_byte;
}

int64_t StateBytesOfRow(const MessageShape& shape) {
  return static_cast<int64_t>(sizeof(float)) * (shape.head_dim + 2);
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
  std::function<int64_t(const Plan& plan, const Round& round)> of_merges;  // called once for each round, in their order
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
      if (round_index == num_rounds) break;
      ReceiveAll(SendAll(round_index));
      MergeAll(round_index);
    }
    return std::ranges::max(free_at_);
  }

 private:
  struct Message {
    int from;
    int to;
    double way_seconds;  // from port to port
    double receive_overhead_seconds;
    size_t out_port;
    size_t in_port;
    PortUse out;  // 0 seconds where it goes through no port
    PortUse in;
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
    const bool is_inside_node = At(node_of_, plan.position) == At(node_of_, move.peer);
    const bool has_own_links = model_.topology.has_own_links;
    const bool has_port = has_own_links || !is_inside_node;
    Occupy(plan.position, 0, link.send_overhead_seconds + (has_port ? 0 : copy_seconds));
    const double awaited_at = has_own_links ? At(round_began_at_, move.peer) : 0;
    return {
        .from = plan.position,
        .to = move.peer,
        .way_seconds = std::max(0.0, link.latency_seconds - link.send_overhead_seconds - link.receive_overhead_seconds),
        .receive_overhead_seconds = link.receive_overhead_seconds,
        .out_port = PortOf(plan.position, is_inside_node),
        .in_port = PortOf(move.peer, is_inside_node),
        .out = {.begins_at = std::max(At(free_at_, plan.position), awaited_at),
                .seconds = has_port ? copy_seconds : 0}};
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

  // Runs all messages of a round through their ports; a port is free for a round once the one before is through.
  static void SharePorts(std::vector<Message>& messages, size_t Message::*port, PortUse Message::*use,
                         std::vector<double>& free_at) {
    std::vector<std::vector<PortUse*>> uses_of(free_at.size());
    for (Message& message : messages) {
      PortUse& one = message.*use;
      one.ends_at = one.begins_at;
      if (one.seconds > 0) uses_of[message.*port].push_back(&one);
    }
    std::vector<PortUse> uses;
    for (size_t i = 0; i < uses_of.size(); ++i) {
      uses.clear();
      for (PortUse* one : uses_of[i]) {
        one->begins_at = std::max(one->begins_at, free_at[i]);
        uses.push_back(*one);
      }
      SharePort(uses);
      for (size_t k = 0; k < uses.size(); ++k) {
        *uses_of[i][k] = uses[k];
        free_at[i] = std::max(free_at[i], uses[k].ends_at);
      }
    }
  }

  void Carry(std::vector<Message>& messages) {
    SharePorts(messages, &Message::out_port, &Message::out, out_free_at_);
    // The first byte may be received while the last is still being sent.
    for (Message& message : messages) {
      message.in = {.begins_at = message.out.begins_at + message.way_seconds, .seconds = message.out.seconds};
    }
    SharePorts(messages, &Message::in_port, &Message::in, in_free_at_);
    for (Message& message : messages) {
      message.arrives_at = std::max(message.in.ends_at, message.out.ends_at + message.way_seconds);
    }
  }

  void ReceiveAll(std::vector<Message> messages) {
    Carry(messages);
    std::ranges::stable_sort(messages, {}, &Message::arrives_at);
    for (const Message& message : messages) {
      Occupy(message.to, message.arrives_at, message.receive_overhead_seconds);
      // Nothing is buffered between own links: a sender is done when the receiver is.
      if (model_.topology.has_own_links) Occupy(message.from, message.arrives_at, 0);
    }
  }

  void MergeAll(size_t round_index) {
    std::vector<int> positions(plans_.size());
    std::iota(positions.begin(), positions.end(), 0);
    std::ranges::stable_sort(positions, {}, [&](int position) { return At(free_at_, position); });
    for (const int position : positions) {
      const Plan& plan = plans_[static_cast<size_t>(position)];
      Occupy(position, 0, MergeSeconds(model_, sizes_.of_merges(plan, plan.rounds[round_index])));
    }
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

// What ranks merge as they join forests, in bytes: one state for each subtree that is no longer one of its own.
class Joins {
 public:
  Joins(std::span<const Plan> plans, const CostModel& model, const MessageShape& shape)
      : ownership_(model.ownership), shape_(shape) {
    for (const Plan& plan : plans) held_.push_back({plan.position, plan.position + 1});
  }

  int64_t MergedBytes(const Plan& plan, const Round& round) {
    RankRange& held = held_[static_cast<size_t>(plan.position)];
    int64_t num_subtrees = NumSubtrees(held);
    int64_t num_rows = 0;
    for (const Move& move : round.receives) {
      if (move.content != Content::kForest) continue;
      num_subtrees += NumSubtrees(move.ranks);
      num_rows = RowsOf(move.rows, plan.row_parts, shape_.num_rows).size();
      held = {std::min(held.begin, move.ranks.begin), std::max(held.end, move.ranks.end)};
    }
    return (num_subtrees - NumSubtrees(held)) * num_rows * StateBytesOfRow(shape_);
  }

 private:
  int64_t NumSubtrees(RankRange ranks) const {
    return static_cast<int64_t>(ForestOf(SlotsOf(ranks, ownership_)).size());
  }

  std::span<const SlotRange> ownership_;
  MessageShape shape_;
  std::vector<RankRange> held_;  // by position: whose slots are in its forest
};

}  // namespace

double PredictSeconds(std::span<const Plan> plans, const CostModel& model, const MessageShape& shape) {
  PANDO_CHECK(plans.size() == model.topology.places.size() && plans.size() == model.ownership.size());
  Joins joins(plans, model, shape);
  const Sizes sizes = {
      .of_message = [&](const Plan& plan,
                        const Move& move) { return MessageBytes(move, plan.row_parts, shape, model.ownership); },
      .of_merges = [&](const Plan& plan, const Round& round) { return joins.MergedBytes(plan, round); },
      .of_finished_states =
          [&](const Plan& plan) {
            return RowsOf(plan.finish_rows, plan.row_parts, shape.num_rows).size() * StateBytesOfRow(shape);
          }};
  return Simulation(plans, model, sizes).Run();
}

double PredictSecondsOfEqualMessages(std::span<const Plan> plans, const CostModel& model, int64_t message_bytes) {
  PANDO_CHECK(plans.size() == model.topology.places.size());
  const auto is_forest = [](const Move& move) { return move.content == Content::kForest; };
  const Sizes sizes = {.of_message = [&](const Plan&, const Move&) { return message_bytes; },
                       .of_merges =
                           [&](const Plan&, const Round& round) {
                             return message_bytes *
                                    static_cast<int64_t>(std::ranges::count_if(round.receives, is_forest));
                           },
                       .of_finished_states = [](const Plan&) { return 0; }};
  return Simulation(plans, model, sizes).Run();
}

double PredictSecondsOfShares(std::span<const Plan> plans, const CostModel& model, int64_t share_bytes) {
  PANDO_CHECK(plans.size() == model.topology.places.size());
  const Sizes sizes = {.of_message = [&](const Plan&, const Move& move) { return share_bytes * move.ranks.size(); },
                       .of_merges = [](const Plan&, const Round&) { return 0; },
                       .of_finished_states = [](const Plan&) { return 0; }};
  return Simulation(plans, model, sizes).Run();
}

}  // namespace pando

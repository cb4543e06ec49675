#include "simulation/simulated_machine.h"

#include <smpi/smpi.h>

#include <simgrid/s4u.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "simulation/hollow_memory.h"
#include "simulation/simulated_mpi.h"
#include "simulation/simulated_time.h"

namespace pando {
namespace {

namespace s4u = simgrid::s4u;

constexpr const char* kInstance = "pando";
constexpr double kHostSpeed = 1e9;  // nothing is ever executed on a host: any will do

// The network takes latency + bytes / bandwidth, shares a link fairly and knows nothing of TCP. In two parts: SMPI's
// own settings exist only once it is initialised.
void ConfigureNetwork() {
  for (const char* setting : {"network/model:CM02", "network/weight-S:0", "network/TCP-gamma:0",
                              "network/crosstraffic:no", "surf/precision:1e-12"}) {
    s4u::Engine::set_config(setting);
  }
}

// No time but that of messages and of what ranks Spend: none for calls of MPI, none that this process takes.
void ConfigureSmpi() {
  for (const char* setting :
       {"smpi/simulate-computation:no", "smpi/host-speed:1Gf", "smpi/privatization:no", "smpi/coll-selector:ompi",
        "smpi/async-small-thresh:0", "smpi/send-is-detached-thresh:0", "smpi/init:0", "smpi/test:0", "smpi/iprobe:0",
        "smpi/wtime:0", "smpi/list-leaks:0", "smpi/display-timing:no"}) {
    s4u::Engine::set_config(setting);
  }
}

void CopyUnlessHollow(smx_activity_t message, void* from, size_t bytes) {
  if (IsHollow(from)) return;
  // SimGrid's setter and its own callback name the message differently; only messages come here.
  smpi_comm_copy_buffer_callback(reinterpret_cast<simgrid::kernel::activity::CommImpl*>(message), from, bytes);
}

// What a message takes after it was posted: the sender's overhead is spent by the rank. The receiver's is in here, so
// that it is in MPI's own collectives, too; what it delays the next message, WaitInsteadOfTest adds.
double WaySeconds(const LinkModel& link) { return link.latency_seconds - link.send_overhead_seconds; }

s4u::SplitDuplexLink* MakeLink(s4u::NetZone* zone, const std::string& name, double bytes_per_second,
                               double latency_seconds) {
  s4u::SplitDuplexLink* link = zone->create_split_duplex_link(name, bytes_per_second);
  link->set_latency(latency_seconds);
  link->seal();
  return link;
}

void SpendMergeTime(void* /*in*/, void* /*inout*/, int* count, MPI_Datatype* type) {
  int element_bytes = 0;
  MPI_Type_size(*type, &element_bytes);
  Spend(static_cast<double>(*count) * element_bytes * Device().merge_seconds_per_byte());
}

using Direction = s4u::LinkInRoute::Direction;

}  // namespace

struct SimulatedMachine::Parts {
  // Engine's arguments are those of a program; it keeps to errors.
  static s4u::Engine* MakeEngine() {
    static std::string name = "pando-simulator";
    static std::string quiet = "--log=root.thresh:error";
    static char* arguments[] = {name.data(), quiet.data(), nullptr};
    int count = 2;
    return new s4u::Engine(&count, arguments);
  }

  Platform platform;
  std::unique_ptr<s4u::Engine> engine;
  s4u::NetZone* root = nullptr;
  std::vector<s4u::Host*> hosts;  // by rank
  struct LastPost {
    const s4u::Host* to = nullptr;
    double on_its_way_at = 0;
  };
  std::unordered_map<const s4u::Host*, LastPost> last_posts;  // by sender
  s4u::BarrierPtr everyone;

  const LinkModel& LinkBetween(const s4u::Host* a, const s4u::Host* b) const {
    return a->get_englobing_zone() == b->get_englobing_zone() ? platform.within_node : platform.between_nodes;
  }

  // Posting a message takes time before it is on its way. Of a burst of large ones to one rank (ring's pages) that is
  // so for the first; the others are on their way with it and only keep the sender busy: flows that begin one after the
  // other would each have SimGrid share the link anew, which takes it minutes.
  double PostSeconds(size_t bytes, const s4u::Host* from, const s4u::Host* to) {
    constexpr size_t kLargeBytes = size_t{1} << 16;
    const double overhead = LinkBetween(from, to).send_overhead_seconds;
    LastPost& last = last_posts[from];
    if (bytes < kLargeBytes || last.to != to || last.on_its_way_at != s4u::Engine::get_clock()) {
      last = {to, s4u::Engine::get_clock() + overhead};
      return overhead;
    }
    SpendLater(overhead);
    return 0;
  }

  // A node:    rank i -- its own link -- everything in the node       (within_node)
  //            rank i -- port i mod ports -- router -- other nodes    (between_nodes)
  // A message uses the sender's link and the receiver's: each has half of the latency and all of the bandwidth.
  void AddNode(int node, int num_ranks) {
    s4u::NetZone* zone = s4u::create_full_zone("node" + std::to_string(node));
    zone->set_parent(root);
    simgrid::kernel::routing::NetPoint* router = zone->create_router("router" + std::to_string(node));
    std::vector<s4u::SplitDuplexLink*> ports;
    for (int port = 0; platform.max_nodes > 1 && port < platform.ports_per_node; ++port) {
      ports.push_back(MakeLink(zone, "port" + std::to_string(node) + "." + std::to_string(port),
                               platform.between_nodes.bytes_per_second, WaySeconds(platform.between_nodes) / 2));
    }
    std::vector<s4u::Host*> local;
    std::vector<s4u::SplitDuplexLink*> links;
    for (int i = 0; i < num_ranks; ++i) {
      const std::string name = std::to_string(hosts.size());
      s4u::Host* host = zone->create_host("rank" + name, kHostSpeed);
      links.push_back(
          MakeLink(zone, "link" + name, platform.within_node.bytes_per_second, WaySeconds(platform.within_node) / 2));
      local.push_back(host);
      hosts.push_back(host);
    }
    for (size_t i = 0; i < local.size(); ++i) {
      for (size_t j = 0; j < local.size(); ++j) {
        if (i == j) continue;
        zone->add_route(local[i]->get_netpoint(), local[j]->get_netpoint(), nullptr, nullptr,
                        {{links[i], Direction::UP}, {links[j], Direction::DOWN}}, /*symmetrical=*/false);
      }
      if (ports.empty()) continue;
      s4u::SplitDuplexLink* port = ports[i % ports.size()];
      zone->add_route(local[i]->get_netpoint(), router, nullptr, nullptr, {{port, Direction::UP}}, false);
      zone->add_route(router, local[i]->get_netpoint(), nullptr, nullptr, {{port, Direction::DOWN}}, false);
    }
    zone->seal();
    // The switch between nodes has bandwidth for all.
    constexpr double kUnlimited = 1e15;
    s4u::SplitDuplexLink* uplink = MakeLink(root, "uplink" + std::to_string(node), kUnlimited, 0);
    root->add_route(zone->get_netpoint(), nullptr, router, nullptr, {{uplink, Direction::UP}}, /*symmetrical=*/true);
  }
};

SimulatedMachine::Parts* SimulatedMachine::running = nullptr;

SimulatedMachine::SimulatedMachine(const Platform& platform, int num_ranks) : parts_(std::make_unique<Parts>()) {
  Parts& parts = *parts_;
  parts.platform = platform;
  parts.engine.reset(Parts::MakeEngine());
  ConfigureNetwork();
  SMPI_init();
  ConfigureSmpi();
  smpi_comm_set_copy_data_callback(CopyUnlessHollow);
  const auto send_cost = [&parts](size_t bytes, s4u::Host* from, s4u::Host* to) {
    return parts.PostSeconds(bytes, from, to);
  };
  smpi_register_op_cost_callback(SmpiOperation::SEND, send_cost);
  smpi_register_op_cost_callback(SmpiOperation::ISEND, send_cost);
  smpi_register_op_cost_callback(SmpiOperation::RECV, [](size_t, s4u::Host*, s4u::Host*) { return 0.0; });
  running = &parts;

  parts.root = s4u::create_star_zone("platform");
  for (int first = 0, node = 0; first < num_ranks; first += platform.ranks_per_node, ++node) {
    parts.AddNode(node, std::min(platform.ranks_per_node, num_ranks - first));
  }
  parts.root->seal();
  parts.everyone = s4u::Barrier::create(static_cast<unsigned>(num_ranks));
}

SimulatedMachine::~SimulatedMachine() = default;

void SimulatedMachine::Run(const std::function<void(int rank)>& rank_main) {
  Parts& parts = *parts_;
  const int num_ranks = static_cast<int>(parts.hosts.size());
  SMPI_app_instance_register(kInstance, nullptr, num_ranks);
  for (int rank = 0; rank < num_ranks; ++rank) {
    s4u::ActorPtr actor = s4u::Actor::init("rank" + std::to_string(rank), parts.hosts[static_cast<size_t>(rank)]);
    actor->set_property("instance_id", kInstance);
    actor->set_property("rank", std::to_string(rank));
    actor->start([&rank_main, rank] { rank_main(rank); });
  }
  parts.engine->run();
  SMPI_finalize();
}

void SimulatedMachine::Align() { parts_->everyone->wait(); }

const LinkModel& SimulatedMachine::LinkFrom(int rank) {
  return running->LinkBetween(running->hosts[static_cast<size_t>(rank)], s4u::this_actor::get_host());
}

int WaitInsteadOfTest(int count, MPI_Request* requests, int* num_finished, int* finished, MPI_Status* statuses) {
  // To wait for any of n is n times the work, for this program, of waiting for one.
  constexpr int kMostInAnyOrder = 64;
  int own_rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &own_rank);
  *num_finished = 0;
  for (int i = 0; i < count; ++i) {
    MPI_Status& status = statuses[*num_finished];
    int index = requests[i] == MPI_REQUEST_NULL ? MPI_UNDEFINED : i;
    const int code =
        count <= kMostInAnyOrder ? MPI_Waitany(count, requests, &index, &status) : MPI_Wait(&requests[i], &status);
    if (code != MPI_SUCCESS) return code;
    if (index == MPI_UNDEFINED) continue;
    finished[(*num_finished)++] = index;
    // The status of a send names its sender.
    if (status.MPI_SOURCE == own_rank) continue;
    TakeIn(SimulatedMachine::LinkFrom(status.MPI_SOURCE).receive_overhead_seconds);
  }
  return MPI_SUCCESS;
}

int CreateTimedOperator(MPI_User_function* /*function*/, int commute, MPI_Op* op) {
  return PMPI_Op_create(SpendMergeTime, commute, op);
}

}  // namespace pando

#include "pando/communicator.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "src/base/errors.h"
#include "src/ranks/communicator_state.h"
#include "src/ranks/measure_links.h"
#include "src/ranks/rank_access.h"
#include "src/topology/process_place.h"
#include "src/transport/inproc/inproc_group.h"
#include "src/transport/launch.h"
#include "src/transport/mpi/mpi_transport.h"

namespace pando {

namespace {

Status CheckOptions(const CommunicatorOptions& options) {
  if (options.timeout.count() >= 1) return Status();
  return InvalidArgument("the timeout is {} ms: it must be at least 1", options.timeout.count());
}

RankTopology MakeTopology(const Transport& transport, std::span<const ProcessPlace> places) {
  RankTopology topology;
  for (size_t rank = 0; rank < places.size(); ++rank) {
    topology.places.push_back({.node = transport.node_of_rank()[rank],
                               .socket = places[rank].socket,
                               .process = transport.process_of_rank()[rank]});
  }
  topology.cores_per_node = CoresPerNode(places, transport.node_of_rank());
  return topology;
}

// Every rank's place, by rank.
Result<std::vector<ProcessPlace>> GatherPlaces(Transport& transport) {
  const Result<ProcessPlace> mine = DetectProcessPlace();
  if (!mine.ok()) return mine.status();
  std::vector<ProcessPlace> all(static_cast<size_t>(transport.size()));
  Status status = transport.AllGather(std::as_bytes(std::span(&*mine, 1)), std::as_writable_bytes(std::span(all)));
  if (!status.ok()) return status;
  return all;
}

}  // namespace

Communicator::Communicator(std::unique_ptr<CommunicatorState> state) : state_(std::move(state)) {}
Communicator::Communicator(Communicator&& other) noexcept = default;
Communicator& Communicator::operator=(Communicator&& other) noexcept = default;
Communicator::~Communicator() = default;

Communicator Communicator::Alone() { return std::move(InProcess(1).value().front()); }

Result<std::vector<Communicator>> Communicator::InProcess(int64_t num_ranks, const CommunicatorOptions& options) {
  PANDO_RETURN_IF_ERROR(CheckOptions(options));
  // Far outside of what is allowed stays so.
  const auto count = static_cast<int>(std::clamp<int64_t>(num_ranks, -1, std::numeric_limits<int>::max()));
  PANDO_ASSIGN_OR_RETURN(std::vector<std::unique_ptr<Transport>> transports,
                         CreateInprocGroup(count, {.timeout = options.timeout}));
  // Who is alone is near nobody: no need to look at the machine.
  PANDO_ASSIGN_OR_RETURN(const ProcessPlace place, count == 1 ? ProcessPlace{} : DetectProcessPlace());
  const std::vector<ProcessPlace> places(transports.size(), place);
  const RankTopology topology = MakeTopology(*transports.front(), places);
  const RankOrder order = OrderRanks(topology);
  std::vector<Communicator> ranks;
  ranks.reserve(transports.size());
  for (std::unique_ptr<Transport>& transport : transports) {
    auto state = std::make_unique<CommunicatorState>();
    state->transport = std::move(transport);
    state->topology = topology;
    state->order = order;
    ranks.push_back(Communicator(std::move(state)));
  }
  return ranks;
}

Result<Communicator> Communicator::Mpi(const CommunicatorOptions& options) {
  PANDO_RETURN_IF_ERROR(CheckOptions(options));
  Result<std::unique_ptr<Transport>> transport =
      CreateMpiTransport({.timeout = options.timeout, .on_stuck = options.on_stuck});
  if (!transport.ok()) return transport.status();
  PANDO_ASSIGN_OR_RETURN(const std::vector<ProcessPlace> places, GatherPlaces(**transport));
  auto state = std::make_unique<CommunicatorState>();
  state->topology = MakeTopology(**transport, places);
  state->order = OrderRanks(state->topology);
  state->transport = std::move(transport).value();
  return Communicator(std::move(state));
}

bool Communicator::StartedByMpirun() { return StartedUnderMpirun(); }
bool Communicator::BuiltWithMpi() { return pando::BuiltWithMpi(); }

int64_t Communicator::rank() const { return state_->transport->rank(); }
int64_t Communicator::size() const { return state_->transport->size(); }
std::string_view Communicator::transport() const { return state_->transport->name(); }
Status Communicator::Barrier() { return state_->transport->Barrier(); }

Communicator MakeCommunicator(std::unique_ptr<CommunicatorState> state) { return Communicator(std::move(state)); }

CommunicatorState& StateOf(Communicator& communicator) { return *communicator.state_; }

Transport& TransportOf(Communicator& communicator) { return *StateOf(communicator).transport; }
const RankOrder& OrderOf(Communicator& communicator) { return StateOf(communicator).order; }

Result<CostModel> MeasuredCosts(Communicator& communicator, std::vector<SlotRange> ownership) {
  CommunicatorState& state = StateOf(communicator);
  if (!state.merge_seconds_per_byte.has_value()) {
    PANDO_RETURN_IF_ERROR(MeasureLinks(*state.transport, state.topology));
    const Result<double> merge_seconds_per_byte = MeasureMergeSecondsPerByte(*state.transport);
    if (!merge_seconds_per_byte.ok()) return merge_seconds_per_byte.status();
    state.merge_seconds_per_byte = *merge_seconds_per_byte;
  }
  return CostModel{.topology = state.topology,
                   .order = state.order,
                   .ownership = std::move(ownership),
                   .merge_seconds_per_byte = *state.merge_seconds_per_byte};
}

}  // namespace pando

// A communicator of processes: where its ranks are, and what their links cost. Every rank runs the same.
//
//   mpirun -n 4 mpi_communicator_test
#include <unistd.h>

#include <iostream>
#include <string>
#include <vector>

#include "pando/communicator.h"
#include "src/base/errors.h"
#include "src/ranks/communicator_state.h"
#include "src/ranks/rank_access.h"
#include "src/reduction/slot_ownership.h"

namespace pando {
namespace {

Status CheckPlaces(Communicator& communicator) {
  const CommunicatorState& state = StateOf(communicator);
  if (communicator.transport() != "mpi") return Failed("the transport is {}", communicator.transport());
  if (state.topology.num_ranks() != communicator.size()) return Failed("{} places", state.topology.num_ranks());
  for (int rank = 0; rank < state.topology.num_ranks(); ++rank) {
    const RankPlace& place = state.topology.places[rank];
    if (place.node != 0) return Failed("rank {} is on node {}: all are on this machine", rank, place.node);
    if (place.process != rank) return Failed("rank {} is in process {}", rank, place.process);
  }
  return state.order == OrderRanks(state.topology) ? Status() : Failed("the order is not that of the topology");
}

// The figures are above 0 where ranks meet, and the same on all ranks to the bit.
Status CheckCosts(Communicator& communicator) {
  const Result<CostModel> model = MeasuredCosts(communicator, EqualRanges(64, communicator.size()).value());
  if (!model.ok()) return model.status();
  if (Status status = ValidateLinks(model->topology); !status.ok()) return status;
  if (model->merge_seconds_per_byte <= 0) return Failed("merging takes {} s/byte", model->merge_seconds_per_byte);
  struct Figures {
    std::array<LinkModel, kNumLinkLevels> links;
    double merge_seconds_per_byte;
    bool operator==(const Figures&) const = default;
  };
  const Figures mine = {model->topology.links, model->merge_seconds_per_byte};
  std::vector<Figures> all(static_cast<size_t>(communicator.size()));
  Status status =
      TransportOf(communicator).AllGather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  for (size_t rank = 0; rank < all.size() && status.ok(); ++rank) {
    if (all[rank] != mine) status = Failed("rank {} has other figures than rank {}", communicator.rank(), rank);
  }
  return status;
}

Status Check() {
  const CommunicatorOptions options = {.timeout = std::chrono::seconds(60),
                                       .on_stuck = [](const std::string& sentence) {
                                         std::cerr << sentence << std::endl;
                                         _exit(1);
                                       }};
  if (!Communicator::StartedByMpirun() || !Communicator::BuiltWithMpi()) return Failed("mpirun was not recognised");
  Result<Communicator> communicator = Communicator::Mpi(options);
  if (!communicator.ok()) return communicator.status();
  if (Status status = CheckPlaces(*communicator); !status.ok()) return status;
  if (Status status = CheckCosts(*communicator); !status.ok()) return status;
  return communicator->Barrier();
}

}  // namespace
}  // namespace pando

int main() {
  const pando::Status status = pando::Check();
  if (status.ok()) return 0;
  std::cerr << status.message() << std::endl;
  _exit(1);
}

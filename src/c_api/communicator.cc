// The communicators of pando.h.
#include <vector>

#include "src/c_api/call.h"

namespace pando::c_api {
namespace {

std::unique_ptr<pando_communicator> MakeHandle(Communicator communicator) {
  auto handle = std::make_unique<pando_communicator>();
  handle->transport = communicator.transport();
  handle->communicator = std::make_shared<Communicator>(std::move(communicator));
  return handle;
}

Result<CommunicatorOptions> OptionsOf(const pando_communicator_options& options) {
  Status status = CheckSize("communicator options", options, "call pando_communicator_options_init first");
  if (!status.ok()) return status;
  CommunicatorOptions result{.timeout = std::chrono::milliseconds(options.timeout_ms)};
  if (options.on_stuck != nullptr) {
    result.on_stuck = [on_stuck = options.on_stuck, user = options.user](const std::string& sentence) {
      on_stuck(sentence.c_str(), user);
    };
  }
  return result;
}

Status CreateInProcess(int64_t num_ranks, const pando_communicator_options& c_options, pando_communicator** places) {
  const Result<CommunicatorOptions> options = OptionsOf(c_options);
  if (!options.ok()) return options.status();
  Result<std::vector<Communicator>> ranks = Communicator::InProcess(num_ranks, *options);
  if (!ranks.ok()) return ranks.status();
  std::vector<std::unique_ptr<pando_communicator>> handles;
  for (Communicator& rank : *ranks) handles.push_back(MakeHandle(std::move(rank)));
  for (size_t rank = 0; rank < handles.size(); ++rank) places[rank] = handles[rank].release();
  return Status();
}

Status CreateMpi(const pando_communicator_options& c_options, pando_communicator** place) {
  const Result<CommunicatorOptions> options = OptionsOf(c_options);
  if (!options.ok()) return options.status();
  Result<Communicator> communicator = Communicator::Mpi(*options);
  if (!communicator.ok()) return communicator.status();
  *place = MakeHandle(std::move(communicator).value()).release();
  return Status();
}

}  // namespace
}  // namespace pando::c_api

using pando::Status;
using pando::c_api::RunCall;

pando_status pando_communicator_options_init_size(pando_communicator_options* options, size_t struct_size) {
  return RunCall(__func__, {{options, "options"}}, [&] {
    const pando_communicator_options defaults{.struct_size = sizeof(pando_communicator_options),
                                              .timeout_ms = pando::CommunicatorOptions().timeout.count(),
                                              .on_stuck = nullptr,
                                              .user = nullptr};
    return pando::c_api::InitStruct("pando_communicator_options", options, struct_size, defaults);
  });
}

pando_status pando_communicator_create_alone(pando_communicator** communicator) {
  return RunCall(__func__, {{communicator, "communicator"}}, [&] {
    *communicator = pando::c_api::MakeHandle(pando::Communicator::Alone()).release();
    return Status();
  });
}

pando_status pando_communicator_create_in_process(int64_t num_ranks, const pando_communicator_options* options,
                                                  pando_communicator** communicators) {
  return RunCall(__func__, {{options, "options"}, {communicators, "communicators"}},
                 [&] { return pando::c_api::CreateInProcess(num_ranks, *options, communicators); });
}

pando_status pando_communicator_create_mpi(const pando_communicator_options* options,
                                           pando_communicator** communicator) {
  return RunCall(__func__, {{options, "options"}, {communicator, "communicator"}},
                 [&] { return pando::c_api::CreateMpi(*options, communicator); });
}

int pando_started_by_mpirun() { return pando::Communicator::StartedByMpirun() ? 1 : 0; }
int pando_built_with_mpi() { return pando::Communicator::BuiltWithMpi() ? 1 : 0; }

void pando_communicator_destroy(pando_communicator* communicator) { delete communicator; }

pando_status pando_communicator_get_rank(const pando_communicator* communicator, int64_t* rank) {
  return RunCall(__func__, {{communicator, "communicator"}, {rank, "rank"}}, [&] {
    *rank = communicator->communicator->rank();
    return Status();
  });
}

pando_status pando_communicator_get_size(const pando_communicator* communicator, int64_t* size) {
  return RunCall(__func__, {{communicator, "communicator"}, {size, "size"}}, [&] {
    *size = communicator->communicator->size();
    return Status();
  });
}

pando_status pando_communicator_get_transport(const pando_communicator* communicator, const char** transport) {
  return RunCall(__func__, {{communicator, "communicator"}, {transport, "transport"}}, [&] {
    *transport = communicator->transport.c_str();
    return Status();
  });
}

pando_status pando_communicator_barrier(pando_communicator* communicator) {
  return RunCall(__func__, {{communicator, "communicator"}}, [&] { return communicator->communicator->Barrier(); });
}

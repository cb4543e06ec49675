#include "src/transport/mpi/mpi_transport.h"

#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "src/base/check.h"
#include "src/base/errors.h"
#include "src/transport/launch.h"
#include "src/transport/mpi/local_ranks.h"
#include "src/transport/mpi/stall_notices.h"
#include "src/transport/mpi/watchdog.h"
#include "src/transport/wait_error.h"

namespace pando {
namespace {

using Clock = std::chrono::steady_clock;

// One tag for all messages: they arrive in the order in which they were started.
constexpr int kMessageTag = 1;
constexpr int kNoticeTag = 2;

Status MpiError(int rank, const char* call, int code) {
  char text[MPI_MAX_ERROR_STRING] = "unknown error";
  int length = 0;
  MPI_Error_string(code, text, &length);
  return Failed("rank {}: {} failed: {}", rank, call, text);
}

int ErrorClass(int code) {
  int error_class = code;
  MPI_Error_class(code, &error_class);
  return error_class;
}

// How a rank passes the time until a message comes: it spins for what a hop takes, then gives way to others, then
// sleeps a little between looks. With more ranks than cores on the node it gives way at once: the core may be what the
// awaited rank needs. (8 ranks on 2 cores over TCP, 16.6 KB by butterfly: 0.9 ms if they sleep after 300 us, 0.4 ms
// after 2 ms: a nap is long beside a hop.)
class Patience {
 public:
  explicit Patience(bool oversubscribed) : spin_(oversubscribed ? 0 : 1000), yield_(oversubscribed ? 2'000 : 10'000) {}

  void Pause(std::chrono::microseconds waited) {
    constexpr std::chrono::microseconds kNap{50};
    // OpenMPI gives way by itself at every look where ranks outnumber cores; twice is once too often (350 us for 300
    // us). MPICH does not.
    constexpr int kLooksPerYield = 8;
    if (waited < spin_) return;
    if (waited < yield_) {
      if (++num_looks_ % kLooksPerYield == 0) sched_yield();
    } else {
      std::this_thread::sleep_for(kNap);
    }
  }

 private:
  std::chrono::microseconds spin_;
  std::chrono::microseconds yield_;
  int num_looks_ = 0;
};

// MPI's operators take no context of their own, but see the datatype: the ReduceOperator of the MPI_Allreduce under way
// is an attribute of that. (A global would do for a process; in a simulation all ranks are in one.)
int ReduceAttribute() {
  static const int key = [] {
    int created = MPI_KEYVAL_INVALID;
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &created, nullptr);
    return created;
  }();
  return key;
}

void CombineElements(void* in, void* inout, int* count, MPI_Datatype* type) {
  void* attribute = nullptr;
  int is_set = 0;
  MPI_Type_get_attr(*type, ReduceAttribute(), &attribute, &is_set);
  const auto* reduce = static_cast<const ReduceOperator*>(attribute);
  reduce->combine(in, inout, static_cast<size_t>(*count), reduce->context);
}

class MpiTransport : public Transport {
 public:
  MpiTransport(int rank, int size, const MpiOptions& options, std::unique_ptr<Watchdog> watchdog, MPI_Comm communicator,
               bool finalize)
      : Transport("mpi", rank, size, {.timeout = options.timeout}),
        max_message_bytes_(std::clamp<size_t>(options.max_message_bytes, 1, INT_MAX)),
        watchdog_(std::move(watchdog)),
        communicator_(communicator),
        notices_(communicator, kNoticeTag, rank, size),
        finalize_(finalize) {}
  ~MpiTransport() override;

  // What only MPI knows: the nodes of the ranks, and the operator of AllReduce.
  Status Prepare(const std::vector<int>& node_of_rank);

  void Progress() override;
  Status AllReduce(std::span<std::byte> data, const ReduceOperator& reduce) override;
  Status AllReduceSum(std::span<float> data) override { return AllReduceFloats(data, MPI_SUM); }
  Status AllReduceMax(std::span<float> data) override { return AllReduceFloats(data, MPI_MAX); }

 private:
  // One MPI message: a piece of a part.
  struct Piece {
    int peer = 0;
    bool is_send = false;
    bool done = false;
    int bytes = 0;
  };
  struct PendingTransfer {
    std::vector<MPI_Request> requests;
    std::vector<Piece> pieces;
    std::vector<int> finished;  // room for MPI_Testsome's answer
    std::vector<MPI_Status> statuses;
  };

  Status StartIn(int slot, std::span<const SendPart> sends, std::span<const ReceivePart> receives) override;
  Status WaitFor(int slot) override;

  Status StartPieces(PendingTransfer& transfer, bool is_send, int peer, const std::byte* data, size_t bytes);
  // Lets MPI work and notes what is finished. True when all is.
  Result<bool> Test(PendingTransfer& transfer);
  static std::vector<int> LatePeers(const PendingTransfer& transfer);
  Status CheckFinished(const Piece& piece, const MPI_Status& status, bool has_error) const;
  Status FindNodes();
  Status AllReduceFloats(std::span<float> data, MPI_Op op);
  Status AllReduceWith(std::span<std::byte> data, size_t count, MPI_Datatype type, MPI_Op op);
  Result<MPI_Datatype> TypeOf(size_t element_bytes);

  size_t max_message_bytes_;
  std::unique_ptr<Watchdog> watchdog_;
  MPI_Comm communicator_;
  StallNotices notices_;
  bool finalize_;
  bool oversubscribed_ = false;
  MPI_Op combine_ = MPI_OP_NULL;
  std::vector<std::pair<size_t, MPI_Datatype>> types_;  // by element size; a program has a few
  std::array<PendingTransfer, kMaxPending> transfers_;
};

MpiTransport::~MpiTransport() {
  if (!broken().ok()) return;
  for (auto& [bytes, type] : types_) MPI_Type_free(&type);
  if (combine_ != MPI_OP_NULL) MPI_Op_free(&combine_);
  {
    const Watchdog::Watch watch(*watchdog_, "MPI_Comm_free");
    MPI_Comm_free(&communicator_);
  }
  if (!finalize_) return;
  const Watchdog::Watch watch(*watchdog_, "MPI_Finalize");
  MPI_Finalize();
}

Status MpiTransport::Prepare(const std::vector<int>& node_of_rank) {
  for (int peer = 0; peer < size(); ++peer) process_of_rank_[peer] = peer;
  if (const int code = MPI_Op_create(CombineElements, /*commute=*/0, &combine_); code != MPI_SUCCESS) {
    return MpiError(rank(), "MPI_Op_create", code);
  }
  if (node_of_rank.empty()) return FindNodes();
  PANDO_CHECK(node_of_rank.size() == static_cast<size_t>(size()));
  node_of_rank_ = node_of_rank;
  return {};
}

Status MpiTransport::FindNodes() {
  const Watchdog::Watch watch(*watchdog_, "MPI_Comm_split_type");
  MPI_Comm node = MPI_COMM_NULL;
  int code = MPI_Comm_split_type(communicator_, MPI_COMM_TYPE_SHARED, rank(), MPI_INFO_NULL, &node);
  if (code != MPI_SUCCESS) return MpiError(rank(), "MPI_Comm_split_type", code);
  int ranks_on_node = 0;
  MPI_Comm_size(node, &ranks_on_node);
  oversubscribed_ = ranks_on_node > sysconf(_SC_NPROCESSORS_ONLN);
  // A node is known by its lowest rank.
  int leader = rank();
  code = MPI_Bcast(&leader, 1, MPI_INT, 0, node);
  std::vector<int> leaders(size());
  if (code == MPI_SUCCESS) code = MPI_Allgather(&leader, 1, MPI_INT, leaders.data(), 1, MPI_INT, communicator_);
  MPI_Comm_free(&node);
  if (code != MPI_SUCCESS) return MpiError(rank(), "MPI_Allgather", code);
  int num_nodes = 0;
  for (int peer = 0; peer < size(); ++peer) {
    node_of_rank_[peer] = leaders[peer] == peer ? num_nodes++ : node_of_rank_[leaders[peer]];
  }
  return {};
}

Status MpiTransport::StartPieces(PendingTransfer& transfer, bool is_send, int peer, const std::byte* data,
                                 size_t bytes) {
  size_t begin = 0;
  do {  // An empty part is one empty message.
    const int piece = static_cast<int>(std::min(bytes - begin, max_message_bytes_));
    MPI_Request request = MPI_REQUEST_NULL;
    // A receive's buffer came as a pointer to bytes that may be written.
    std::byte* place = const_cast<std::byte*>(data) + begin;
    const int code = is_send ? MPI_Isend(place, piece, MPI_BYTE, peer, kMessageTag, communicator_, &request)
                             : MPI_Irecv(place, piece, MPI_BYTE, peer, kMessageTag, communicator_, &request);
    if (code != MPI_SUCCESS) return MpiError(rank(), is_send ? "MPI_Isend" : "MPI_Irecv", code);
    transfer.requests.push_back(request);
    transfer.pieces.push_back({.peer = peer, .is_send = is_send, .bytes = piece});
    begin += piece;
  } while (begin < bytes);
  return {};
}

Status MpiTransport::StartIn(int slot, std::span<const SendPart> sends, std::span<const ReceivePart> receives) {
  PendingTransfer& transfer = transfers_[slot];
  transfer.requests.clear();
  transfer.pieces.clear();
  // Receives first: what arrives then has its place.
  for (const ReceivePart& part : receives) {
    Status status = StartPieces(transfer, /*is_send=*/false, part.from, part.data, part.bytes);
    if (!status.ok()) return status;
  }
  for (const SendPart& part : sends) {
    Status status = StartPieces(transfer, /*is_send=*/true, part.to, part.data, part.bytes);
    if (!status.ok()) return status;
  }
  transfer.finished.resize(transfer.requests.size());
  transfer.statuses.resize(transfer.requests.size());
  return {};
}

Status MpiTransport::CheckFinished(const Piece& piece, const MPI_Status& status, bool has_error) const {
  const int code = has_error ? status.MPI_ERROR : MPI_SUCCESS;
  const size_t expected_bytes = static_cast<size_t>(piece.bytes);
  if (code != MPI_SUCCESS && ErrorClass(code) == MPI_ERR_TRUNCATE)
    return TooLongError(piece.peer, rank(), expected_bytes);
  if (code != MPI_SUCCESS) {
    return Failed("{} (the other end is rank {})",
                  MpiError(rank(), piece.is_send ? "sending" : "receiving", code).message(), piece.peer);
  }
  if (piece.is_send) return {};
  int received = 0;
  MPI_Get_count(&status, MPI_BYTE, &received);
  if (received == piece.bytes) return {};
  return SizeError(piece.peer, static_cast<size_t>(received), rank(), expected_bytes);
}

Result<bool> MpiTransport::Test(PendingTransfer& transfer) {
  int num_finished = 0;
  const int code = MPI_Testsome(static_cast<int>(transfer.requests.size()), transfer.requests.data(), &num_finished,
                                transfer.finished.data(), transfer.statuses.data());
  const bool has_error = code != MPI_SUCCESS && ErrorClass(code) == MPI_ERR_IN_STATUS;
  if (code != MPI_SUCCESS && !has_error) return MpiError(rank(), "MPI_Testsome", code);
  if (num_finished == MPI_UNDEFINED) return true;
  for (int i = 0; i < num_finished; ++i) {
    Piece& piece = transfer.pieces[transfer.finished[i]];
    piece.done = true;
    PANDO_RETURN_IF_ERROR(CheckFinished(piece, transfer.statuses[i], has_error));
  }
  return std::all_of(transfer.pieces.begin(), transfer.pieces.end(), [](const Piece& piece) { return piece.done; });
}

std::vector<int> MpiTransport::LatePeers(const PendingTransfer& transfer) {
  std::vector<int> late;
  for (const Piece& piece : transfer.pieces) {
    if (!piece.done) late.push_back(piece.peer);
  }
  return late;
}

Status MpiTransport::WaitFor(int slot) {
  PendingTransfer& transfer = transfers_[slot];
  Patience patience(oversubscribed_);
  const Clock::time_point start = Clock::now();
  bool has_told = false;
  while (true) {
    PANDO_ASSIGN_OR_RETURN(bool done, Test(transfer));
    if (done) break;
    const Clock::duration waited = Clock::now() - start;
    // Early enough for the others to know at their deadline, which may be a little before or after this one.
    if (!has_told && waited >= timeout() * 3 / 4) {
      notices_.Tell(LatePeers(transfer));
      has_told = true;
    }
    if (waited >= timeout()) return DeadlineError(rank(), FindBlame(LatePeers(transfer), notices_.Hear()), timeout());
    patience.Pause(std::chrono::duration_cast<std::chrono::microseconds>(waited));
  }
  if (has_told) notices_.TakeBack();
  return {};
}

void MpiTransport::Progress() {
  // Any call lets MPI work on all requests; this one changes nothing.
  int found = 0;
  if (broken().ok()) MPI_Iprobe(MPI_ANY_SOURCE, kNoticeTag, communicator_, &found, MPI_STATUS_IGNORE);
}

Result<MPI_Datatype> MpiTransport::TypeOf(size_t element_bytes) {
  for (const auto& [bytes, type] : types_) {
    if (bytes == element_bytes) return type;
  }
  if (element_bytes > INT_MAX)
    return InvalidArgument("an element of {} bytes is more than MPI can count", element_bytes);
  MPI_Datatype type = MPI_DATATYPE_NULL;
  int code = MPI_Type_contiguous(static_cast<int>(element_bytes), MPI_BYTE, &type);
  if (code == MPI_SUCCESS) code = MPI_Type_commit(&type);
  if (code != MPI_SUCCESS) return MpiError(rank(), "MPI_Type_commit", code);
  types_.emplace_back(element_bytes, type);
  return type;
}

Status MpiTransport::AllReduceWith(std::span<std::byte> data, size_t count, MPI_Datatype type, MPI_Op op) {
  if (count > INT_MAX) return InvalidArgument("an allreduce of {} elements is more than MPI can count", count);
  const Watchdog::Watch watch(*watchdog_, "MPI_Allreduce");
  const int code = MPI_Allreduce(MPI_IN_PLACE, data.data(), static_cast<int>(count), type, op, communicator_);
  if (code != MPI_SUCCESS) return Break(MpiError(rank(), "MPI_Allreduce", code));
  ++traffic_.mpi_collectives;
  traffic_.mpi_collective_operand_bytes += data.size();
  return {};
}

Status MpiTransport::AllReduce(std::span<std::byte> data, const ReduceOperator& reduce) {
  PANDO_RETURN_IF_ERROR(CheckOperand(data, reduce));
  PANDO_ASSIGN_OR_RETURN(const MPI_Datatype type, TypeOf(reduce.element_bytes));
  // MPI's signature knows no const; CombineElements only reads it.
  const int code = MPI_Type_set_attr(type, ReduceAttribute(), const_cast<ReduceOperator*>(&reduce));
  if (code != MPI_SUCCESS) return Break(MpiError(rank(), "MPI_Type_set_attr", code));
  return AllReduceWith(data, data.size() / reduce.element_bytes, type, combine_);
}

Status MpiTransport::AllReduceFloats(std::span<float> data, MPI_Op op) {
  if (!broken().ok()) return broken();
  return AllReduceWith(std::as_writable_bytes(data), data.size(), MPI_FLOAT, op);
}

// The sentence of a call that does not come back, as far as the launcher's variables and this machine tell who waits
// for whom.
std::string StuckSentence(const std::string& call, std::chrono::milliseconds timeout, const LocalRanks* local_ranks) {
  const std::optional<LaunchInfo> launch = DetectLaunch();
  std::vector<int> others;
  if (local_ranks != nullptr) others = local_ranks->Missing();
  if (others.empty() && launch) {  // any of them
    for (int peer = 0; peer < launch->size; ++peer) {
      if (peer != launch->rank) others.push_back(peer);
    }
  }
  const std::string who = launch ? fmt::format("rank {}", launch->rank) : "this process";
  const std::string whom = others.empty() ? "the other ranks" : NameRanks(others);
  return fmt::format(
      "{} waited {} in {} for {}, in vain: one or more of them have not started, have ended, are stopped or are slow; "
      "see "
      "what they printed, or give them more time with a longer timeout",
      who, NameSeconds(timeout), call, whom);
}

Status InitializeMpi(Watchdog& watchdog, int least_level, bool& initialized_here) {
  int is_finalized = 0;
  MPI_Finalized(&is_finalized);
  if (is_finalized != 0)
    return Failed("MPI was finalised in this process and cannot be started again: keep one transport");
  int is_initialized = 0;
  MPI_Initialized(&is_initialized);
  int level = MPI_THREAD_SINGLE;
  initialized_here = is_initialized == 0;
  if (initialized_here) {
    const Watchdog::Watch watch(watchdog, "MPI_Init");
    const int code = MPI_Init_thread(nullptr, nullptr, least_level, &level);
    if (code != MPI_SUCCESS) return Failed("MPI_Init_thread failed with code {}", code);
  } else {
    MPI_Query_thread(&level);
  }
  if (level < least_level) {
    return Failed("this MPI does not allow threads (MPI_THREAD_FUNNELED): build or configure it with thread support");
  }
  return {};
}

}  // namespace

bool BuiltWithMpi() { return true; }

Result<std::unique_ptr<Transport>> CreateMpiTransport(const MpiOptions& options) {
  const std::shared_ptr<LocalRanks> local_ranks =
      MakeLocalRanks([](const char* name) -> const char* { return std::getenv(name); });
  // The ranks look at each other a little before the deadline and leave at it: who leaves first is not missing yet.
  const std::chrono::milliseconds grace = options.timeout / 10;
  Watchdog::Callback on_stuck;
  if (options.on_stuck) {
    on_stuck = [tell = options.on_stuck, timeout = options.timeout, grace, local_ranks](const std::string& call) {
      const std::string sentence = StuckSentence(call, timeout, local_ranks.get());
      std::this_thread::sleep_for(grace);
      tell(sentence);
    };
  }
  auto watchdog = std::make_unique<Watchdog>(options.timeout - grace, std::move(on_stuck));
  bool initialized_here = false;
  const int least_level = options.is_single_threaded ? MPI_THREAD_SINGLE : MPI_THREAD_FUNNELED;
  PANDO_RETURN_IF_ERROR(InitializeMpi(*watchdog, least_level, initialized_here));

  MPI_Comm communicator = MPI_COMM_NULL;
  {
    const Watchdog::Watch watch(*watchdog, "MPI_Comm_dup");
    const int code = MPI_Comm_dup(MPI_COMM_WORLD, &communicator);
    if (code != MPI_SUCCESS) return Failed("MPI_Comm_dup failed with code {}", code);
  }
  // MPICH reports what goes wrong in MPI_Testsome to MPI_COMM_WORLD, or to MPI_COMM_SELF.
  for (MPI_Comm each : {communicator, MPI_COMM_WORLD, MPI_COMM_SELF}) MPI_Comm_set_errhandler(each, MPI_ERRORS_RETURN);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(communicator, &rank);
  MPI_Comm_size(communicator, &size);
  auto transport =
      std::make_unique<MpiTransport>(rank, size, options, std::move(watchdog), communicator, initialized_here);
  PANDO_RETURN_IF_ERROR(transport->Prepare(options.node_of_rank));
  return std::unique_ptr<Transport>(std::move(transport));
}

}  // namespace pando

#include "src/engine/engine_thread.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <new>
#include <system_error>
#include <utility>

#include "src/base/errors.h"
#include "src/ranks/agreement.h"
#include "src/ranks/rank_access.h"

namespace pando {
namespace {

// Nothing that a function throws leaves it.
template <typename Function>
Status RunWithoutThrowing(const Function& function) {
  try {
    return function();
  } catch (const std::bad_alloc&) {
    return OutOfMemory("the machine does not have the memory that the call needs: free some, or use more machines");
  } catch (const std::exception& exception) {
    return Failed("the call ended with an exception: {}", exception.what());
  } catch (...) {
    return Failed("the call ended with an exception that says nothing");
  }
}

}  // namespace

EngineThread::~EngineThread() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Status EngineThread::Start(Result<std::shared_ptr<const Model>> model, const TransformerOptions& transformer,
                           const EngineThreadOptions& options) {
  model_.emplace(std::move(model));
  transformer_ = transformer;
  options_ = options;
  const auto run = [this] {
    Status status = RunWithoutThrowing([this] { return RunRanks(); });
    const std::lock_guard lock(mutex_);
    ending_ = std::move(status);
    has_ended_ = true;
    changed_.notify_all();
  };
  try {
    thread_ = std::thread(run);
  } catch (const std::system_error& error) {
    return Failed("the model could not get a thread ({}): raise the limit of threads", error.what());
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return is_ready_ || has_ended_; });
  return is_ready_ ? Status() : ending_;
}

void EngineThread::Tell(int64_t rank, int64_t num_ranks) {
  const std::lock_guard lock(mutex_);
  rank_ = rank;
  num_ranks_ = num_ranks;
  is_ready_ = true;
  changed_.notify_all();
}

Status EngineThread::RunRanks() {
  if (!options_.with_mpi) {
    PANDO_RETURN_IF_ERROR(*model_);
    return RunInProcess(options_.num_ranks, options_.communicator, [this](Communicator& communicator) {
      return RunWithoutThrowing([&] { return RunRank(communicator); });
    });
  }
  PANDO_ASSIGN_OR_RETURN(Communicator communicator, Communicator::Mpi(options_.communicator));
  // A machine may lack the file that the others have.
  PANDO_RETURN_IF_ERROR(Agree(TransportOf(communicator), model_->status()));
  if (communicator.rank() != 0) Tell(communicator.rank(), communicator.size());
  return RunRank(communicator);
}

Status EngineThread::RunRank(Communicator& communicator) {
  return Engine::Run(communicator, **model_, transformer_, [&](Engine& engine) {
    Tell(0, communicator.size());
    return RunFront(engine);
  });
}

Status EngineThread::RunFront(Engine& engine) {
  // The workers' patience is the communicator's timeout.
  const auto interval =
      std::clamp(options_.communicator.timeout / 4, std::chrono::milliseconds(1), std::chrono::milliseconds(1000));
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait_for(lock, interval, [this] { return is_stopping_ || call_ != nullptr; });
    if (is_stopping_) return Status();
    const std::function<Status(Engine&)>* const call = call_;
    lock.unlock();
    // If a worker is lost, the engine remembers it, and the next call says so.
    Status status = call == nullptr ? engine.KeepAlive() : RunWithoutThrowing([&] { return (*call)(engine); });
    lock.lock();
    if (call == nullptr) continue;
    call_status_ = std::move(status);
    call_ = nullptr;
    changed_.notify_all();
  }
}

Status EngineThread::Call(const std::function<Status(Engine& engine)>& function) {
  if (!is_front()) return InvalidArgument("only rank 0 makes calls: rank {} serves it", rank_);
  if (std::this_thread::get_id() == thread_.get_id()) {
    return InvalidArgument("a callback called its own model: it can do so after its call has returned");
  }
  const std::lock_guard one_call(callers_);
  std::unique_lock lock(mutex_);
  if (has_ended_) return ending_.ok() ? Failed("the ranks have ended") : ending_;
  call_ = &function;
  changed_.notify_all();
  changed_.wait(lock, [this] { return call_ == nullptr || has_ended_; });
  call_ = nullptr;
  return has_ended_ ? ending_ : call_status_;
}

Status EngineThread::Serve() {
  if (is_front()) return Status();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return has_ended_; });
  return ending_;
}

}  // namespace pando

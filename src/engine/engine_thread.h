// EngineThread: an engine with ranks of its own, for callers that hand over no control. A thread of it is the front's
// (or, under mpirun, this process's rank); calls are handed to that thread, and while there are none it keeps the
// workers alive.
//
//   EngineThread thread;
//   PANDO_RETURN_IF_ERROR(thread.Start(model, transformer_options, {.num_ranks = 4}));
//   PANDO_RETURN_IF_ERROR(thread.Call([&](Engine& engine) { return engine.Reserve(1000); }));
#ifndef PANDO_SRC_ENGINE_ENGINE_THREAD_H_
#define PANDO_SRC_ENGINE_ENGINE_THREAD_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "pando/communicator.h"
#include "pando/status.h"
#include "src/engine/engine.h"
#include "src/model/model.h"
#include "src/model/transformer.h"

namespace pando {

struct EngineThreadOptions {
  int64_t num_ranks = 1;
  bool with_mpi = false;  // the ranks are the processes that mpirun started; num_ranks is not looked at
  CommunicatorOptions communicator;
};

class EngineThread {
 public:
  EngineThread() = default;
  ~EngineThread();  // ends the ranks; in a worker it waits for the front's end
  EngineThread(const EngineThread&) = delete;
  EngineThread& operator=(const EngineThread&) = delete;

  // Once. `model` may be a failure: then all processes of a group learn of it.
  Status Start(Result<std::shared_ptr<const Model>> model, const TransformerOptions& transformer,
               const EngineThreadOptions& options);

  bool is_front() const { return rank_ == 0; }
  int64_t num_ranks() const { return num_ranks_; }

  // On the front, from any thread but the engine's own: runs `function` there and waits for it.
  Status Call(const std::function<Status(Engine& engine)>& function);
  // Waits for the front's end, in a worker. In the front: nothing.
  Status Serve();

 private:
  Status RunRanks();
  Status RunRank(Communicator& communicator);
  Status RunFront(Engine& engine);
  void Tell(int64_t rank, int64_t num_ranks);

  std::optional<Result<std::shared_ptr<const Model>>> model_;
  TransformerOptions transformer_;
  EngineThreadOptions options_;
  int64_t rank_ = 0;
  int64_t num_ranks_ = 0;

  std::mutex callers_;  // one call at a time
  std::mutex mutex_;    // of what follows
  std::condition_variable changed_;
  bool is_ready_ = false;
  bool has_ended_ = false;
  bool is_stopping_ = false;
  const std::function<Status(Engine& engine)>* call_ = nullptr;
  Status call_status_;
  Status ending_;  // of the thread
  std::thread thread_;
};

}  // namespace pando

#endif  // PANDO_SRC_ENGINE_ENGINE_THREAD_H_

// One rank that works with the others until one of them is lost: it gathers a few bytes from all, or adds numbers with
// all, or hands a byte to its neighbour, again and again.
//
//   mpirun -n 3 transport_peer --timeout-ms 2000 [--waits-in gather|allreduce|ring] [--absent RANK] [--steps N]
//
// Rank RANK never calls MPI_Init. Says "rank R is process PID" at the start, "rank R runs" when MPI is there, and on
// failure the sentence; then it ends with 1, and with 0 after N steps. Other options are left alone: by them a test
// finds its processes.
#include <fmt/format.h>
#include <unistd.h>

#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "src/transport/launch.h"
#include "src/transport/mpi/mpi_transport.h"

namespace {

struct Arguments {
  std::chrono::milliseconds timeout{2000};
  int num_steps = 1'000'000;
  int absent = -1;
  std::string waits_in = "gather";
};

Arguments Parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    const std::string value = argv[i + 1];
    if (name == "--timeout-ms") arguments.timeout = std::chrono::milliseconds(std::stoi(value));
    if (name == "--steps") arguments.num_steps = std::stoi(value);
    if (name == "--absent") arguments.absent = std::stoi(value);
    if (name == "--waits-in") arguments.waits_in = value;
  }
  return arguments;
}

// One write, so that the lines of several ranks do not mix.
void Say(const std::string& sentence) {
  const std::string line = sentence + "\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

[[noreturn]] void Leave(const std::string& sentence) {
  Say(sentence);
  _exit(1);
}

// Each rank waits for the one before it, and for nobody else.
pando::Status PassOn(pando::Transport& transport) {
  std::byte received{};
  const std::byte sent{};
  const pando::SendPart send{.to = (transport.rank() + 1) % transport.size(), .data = &sent, .bytes = 1};
  const pando::ReceivePart receive{
      .from = (transport.rank() + transport.size() - 1) % transport.size(), .data = &received, .bytes = 1};
  return transport.Exchange({&send, 1}, {&receive, 1});
}

pando::Status Step(pando::Transport& transport, const Arguments& arguments) {
  std::vector<float> data(transport.size(), 1.0f);
  if (arguments.waits_in == "allreduce") return transport.AllReduceSum(data);
  if (arguments.waits_in == "ring") return PassOn(transport);
  const std::span<std::byte> all = std::as_writable_bytes(std::span(data));
  return transport.AllGather(all.subspan(transport.rank() * sizeof(float), sizeof(float)), all);
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = Parse(argc, argv);
  const int launched_as = pando::DetectLaunch().value_or(pando::LaunchInfo{}).rank;
  Say(fmt::format("rank {} is process {}", launched_as, getpid()));
  if (launched_as == arguments.absent) {
    std::this_thread::sleep_for(20 * arguments.timeout);
    return 0;
  }
  pando::Result<std::unique_ptr<pando::Transport>> transport =
      pando::CreateMpiTransport({.timeout = arguments.timeout, .on_stuck = Leave});
  if (!transport.ok()) Leave(transport.status().message());
  Say(fmt::format("rank {} runs", launched_as));
  for (int step = 0; step < arguments.num_steps; ++step) {
    const pando::Status status = Step(**transport, arguments);
    if (!status.ok()) Leave(status.message());
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return 0;
}

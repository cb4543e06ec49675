#include "src/transport/mpi/local_ranks.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

namespace pando {
namespace {

struct Address {
  sockaddr_un name{};
  socklen_t bytes = 0;
};

// In Linux's abstract namespace: no file, gone with the last process that has it open.
Address AddressOf(const std::string& job, int rank) {
  const std::string text = fmt::format("pando-rank-{}-{}", job, rank);
  Address address;
  address.name.sun_family = AF_UNIX;
  const size_t length = std::min(text.size(), sizeof(address.name.sun_path) - 1);
  std::memcpy(address.name.sun_path + 1, text.data(), length);
  address.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  return address;
}

const sockaddr* AsSocketAddress(const Address& address) { return reinterpret_cast<const sockaddr*>(&address.name); }

// 'T' in the third field of /proc/PID/stat, which follows the command's name in parentheses.
bool IsStopped(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  const std::string stat{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const size_t name_end = stat.rfind(')');
  return name_end != std::string::npos && name_end + 2 < stat.size() &&
         std::string_view("TtZX").find(stat[name_end + 2]) != std::string_view::npos;
}

}  // namespace

LocalRanks::LocalRanks(std::string job, int rank, int size)
    : job_(std::move(job)), rank_(rank), size_(size), socket_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const Address address = AddressOf(job_, rank);
  // Without its socket a rank is only named by others as missing: not worth an error.
  if (bind(socket_, AsSocketAddress(address), address.bytes) == 0) static_cast<void>(listen(socket_, size));
}

LocalRanks::~LocalRanks() {
  if (socket_ >= 0) close(socket_);
}

std::vector<int> LocalRanks::Missing() const {
  std::vector<int> missing;
  for (int rank = 0; rank < size_; ++rank) {
    if (rank != rank_ && IsMissing(rank)) missing.push_back(rank);
  }
  return missing;
}

bool LocalRanks::IsMissing(int rank) const {
  const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (probe < 0) return false;
  const Address address = AddressOf(job_, rank);
  bool missing = connect(probe, AsSocketAddress(address), address.bytes) != 0 && errno == ECONNREFUSED;
  ucred owner{};
  socklen_t bytes = sizeof(owner);
  if (!missing && getsockopt(probe, SOL_SOCKET, SO_PEERCRED, &owner, &bytes) == 0) missing = IsStopped(owner.pid);
  close(probe);
  return missing;
}

std::unique_ptr<LocalRanks> MakeLocalRanks(const EnvironmentReader& environment) {
  const std::optional<LaunchInfo> launch = DetectLaunch(environment);
  const char* job = environment("PMIX_NAMESPACE");
  const char* local_size = environment("OMPI_COMM_WORLD_LOCAL_SIZE");
  if (!launch || job == nullptr || local_size == nullptr) return nullptr;
  if (local_size != std::to_string(launch->size)) return nullptr;
  return std::make_unique<LocalRanks>(job, launch->rank, launch->size);
}

}  // namespace pando

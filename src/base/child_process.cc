#include "src/base/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "src/base/errors.h"

namespace pando {
namespace {

Status SystemFailure(std::string_view program) {
  return Failed("{} could not be started: {}", program, std::strerror(errno));
}

// A file in memory, to be read from its beginning: unlike a pipe it takes any amount before anybody reads.
Result<FileDescriptor> FileWith(std::string_view text, std::string_view program) {
  FileDescriptor file(memfd_create("pando-input", MFD_CLOEXEC));
  if (file.get() < 0) return SystemFailure(program);
  while (!text.empty()) {
    const ssize_t written = write(file.get(), text.data(), text.size());
    if (written < 0 && errno != EINTR) return SystemFailure(program);
    if (written > 0) text.remove_prefix(static_cast<size_t>(written));
  }
  if (lseek(file.get(), 0, SEEK_SET) != 0) return SystemFailure(program);
  return file;
}

struct Pipe {
  FileDescriptor reader;  // does not block
  FileDescriptor writer;
};

Result<Pipe> MakePipe(std::string_view program) {
  std::array<int, 2> ends = {-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return SystemFailure(program);
  Pipe pipe = {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
  if (fcntl(pipe.reader.get(), F_SETFL, O_NONBLOCK) != 0) return SystemFailure(program);
  return pipe;
}

constexpr int kCannotRun = 127;  // as shells say it

// After fork: becomes `program`. Nothing in here but system calls.
[[noreturn]] void Become(char* program, pid_t parent, const std::array<int, 3>& streams) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kCannotRun);  // it ended before
  for (int i = 0; i < 3; ++i) {
    if (dup2(streams[static_cast<size_t>(i)], i) < 0) _exit(kCannotRun);
  }
  char* arguments[] = {program, nullptr};
  execv(program, arguments);
  _exit(kCannotRun);
}

}  // namespace

Result<ChildProcess> ChildProcess::Start(const std::string& program, std::string_view input) {
  const Result<FileDescriptor> in = FileWith(input, program);
  if (!in.ok()) return in.status();
  Result<Pipe> out = MakePipe(program);
  if (!out.ok()) return out.status();
  Result<Pipe> errors = MakePipe(program);
  if (!errors.ok()) return errors.status();
  std::string path = program;
  const pid_t parent = getpid();
  const pid_t process = fork();
  if (process < 0) return SystemFailure(program);
  if (process == 0) Become(path.data(), parent, {in->get(), out->writer.get(), errors->writer.get()});
  ChildProcess child;
  child.process_ = process;
  child.streams_[0].descriptor = std::move(out->reader);
  child.streams_[1].descriptor = std::move(errors->reader);
  return child;
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : process_(std::exchange(other.process_, -1)), streams_(std::move(other.streams_)), exit_code_(other.exit_code_) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  std::swap(process_, other.process_);
  std::swap(streams_, other.streams_);
  std::swap(exit_code_, other.exit_code_);
  return *this;
}

ChildProcess::~ChildProcess() { Kill(); }

void ChildProcess::Kill() {
  if (process_ < 0) return;
  kill(process_, SIGKILL);
  while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
}

bool ChildProcess::Advance() {
  bool is_open = false;
  for (Stream& stream : streams_) {
    std::array<char, 4096> bytes;
    while (stream.descriptor.get() >= 0) {
      const ssize_t count = read(stream.descriptor.get(), bytes.data(), bytes.size());
      if (count > 0) {
        stream.text.append(bytes.data(), static_cast<size_t>(count));
      } else if (count < 0 && errno == EINTR) {
        continue;
      } else if (count < 0 && errno == EAGAIN) {
        is_open = true;
        break;
      } else {
        stream.descriptor = FileDescriptor();
      }
    }
  }
  if (is_open || process_ < 0) return process_ < 0;
  int status = 0;
  const pid_t ended = waitpid(process_, &status, WNOHANG);
  if (ended != process_) return false;
  process_ = -1;
  exit_code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return true;
}

}  // namespace pando

// ChildProcess: a program that runs beside this one. Its input is given at the start, what it writes is collected, and
// nobody waits for it longer than they want to.
//
//   Result<ChildProcess> child = ChildProcess::Start("/usr/bin/sort", "b\na\n");
//   while (!child->Advance()) poll(...);         // on child->descriptors(), with a limit
//   child->exit_code(), child->output()
//
// It does not outlive this program, and its end is the end of the object.
#ifndef PANDO_SRC_BASE_CHILD_PROCESS_H_
#define PANDO_SRC_BASE_CHILD_PROCESS_H_

#include <sys/types.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "pando/status.h"
#include "src/base/file.h"

namespace pando {

class ChildProcess {
 public:
  // `program`: a path. To be called while this process has one thread.
  static Result<ChildProcess> Start(const std::string& program, std::string_view input);

  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  // Kills it where it is still running.
  ~ChildProcess();

  // Can be read from as soon as there is something to Advance for; -1 where there will be no more.
  std::array<int, 2> descriptors() const { return {streams_[0].descriptor.get(), streams_[1].descriptor.get()}; }

  // Takes in what it has written. Whether it has ended, by itself.
  bool Advance();

  // Once it has ended: what it returned, or 128 + the signal that ended it, as shells say it.
  int exit_code() const { return exit_code_; }
  const std::string& output() const { return streams_[0].text; }
  const std::string& errors() const { return streams_[1].text; }

 private:
  struct Stream {
    FileDescriptor descriptor;
    std::string text;
  };

  ChildProcess() = default;
  void Kill();

  pid_t process_ = -1;  // -1: none, or not any more
  std::array<Stream, 2> streams_;
  int exit_code_ = 0;
};

}  // namespace pando

#endif  // PANDO_SRC_BASE_CHILD_PROCESS_H_

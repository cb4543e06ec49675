// How the program ends: exit codes, and complaints on stderr, one line each. Under mpirun every process is told from
// the others.
#ifndef PANDO_SRC_CLI_EXIT_H_
#define PANDO_SRC_CLI_EXIT_H_

#include <string>

#include "pando/status.h"

namespace pando::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;         // something went wrong while running
inline constexpr int kExitBadInput = 2;       // the same command line will fail again
inline constexpr int kExitInterrupted = 130;  // by Ctrl-C, as shells say it

int ExitCodeOf(const Status& status);

// "pando: rank 3: MESSAGE": always one line, whatever a value contained; the rank only where there are several
// processes. Returns `exit_code`.
int Complain(const std::string& message, int exit_code);

// Of those that mpirun started; true without mpirun.
bool IsFirstProcess();

// For what is wrong in the same way in every process that mpirun started: only the first of them says it.
int ComplainOnce(const std::string& message, int exit_code);

// The complaint about a Status that is not OK: said once where every process has the same, by each of them where not.
int ComplainAbout(const Status& status);

// Inside a catch of std::exception: what was thrown, as a Status.
Status CaughtStatus();

// `message` as a line of stderr, by the process `rank` of several, or of one (rank -1).
std::string ComplaintLine(int rank, const std::string& message);

}  // namespace pando::cli

#endif  // PANDO_SRC_CLI_EXIT_H_

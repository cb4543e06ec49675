"""A rank that is killed, stopped or never starts: every other one says whom it waited for and ends with 1.

    lost_peer_test.py LAUNCHER PEER_PROGRAM

Real processes under OpenMPI's mpirun. Left to itself, mpirun ends all ranks as soon as one is lost and tells of it; here
it runs with --enable-recovery, so that the ranks themselves have to notice.
"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "mpi"))
import mpirun  # pylint: disable=wrong-import-position

LAUNCHER = ""
PEER = ""
NUM_RANKS = 4
LOST = 1
TIMEOUT_S = 2
# How long a busy machine may take for what should be a moment. No test passes or fails by less.
PATIENCE_S = 30

# Each rank writes into a file of its own, and its exit code beside it.
WRAPPER = 'rank=$OMPI_COMM_WORLD_RANK; "${@:2}" 2>"$1/output.$rank"; echo $? >"$1/new.$rank"; mv "$1/new.$rank" "$1/code.$rank"'


def wait_until(condition):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def processes_with(text):
    """Ids of the living processes with `text` in their command line."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().decode(errors="replace")
            is_dead = re.search(r"^State:\s+[ZX]", (folder / "status").read_text(), re.MULTILINE)
        except OSError:
            continue
        if text in command and not is_dead:
            found.append(int(folder.name))
    return found


class Job:
    """The ranks under mpirun, in a process group of their own that goes when the job is left."""

    def __init__(self, *arguments):
        self.folder_ = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.folder_.name)
        program = ["bash", "-c", WRAPPER, "wrapper", str(self.folder), PEER, "--timeout-ms", str(TIMEOUT_S * 1000),
                   "--folder", str(self.folder), *arguments]
        line, environment = mpirun.command(LAUNCHER, NUM_RANKS, program, recover=True)
        self.launcher = subprocess.Popen(line, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                         start_new_session=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in processes_with(str(self.folder)):
            if process != self.launcher.pid:
                kill(process, signal.SIGKILL)
        try:
            self.launcher.wait(5)
        except subprocess.TimeoutExpired:
            self.launcher.kill()
            self.launcher.wait()
        self.folder_.cleanup()

    def output(self, rank):
        file = self.folder / f"output.{rank}"
        return file.read_text() if file.exists() else ""

    def code(self, rank):
        file = self.folder / f"code.{rank}"
        return int(file.read_text()) if file.exists() else None

    def process(self, rank):
        match = re.search(r"is process (\d+)\n", self.output(rank))
        return int(match[1]) if match else None

    def is_running(self):
        return all("runs\n" in self.output(rank) for rank in range(NUM_RANKS))


def kill(process, with_signal):
    try:
        os.kill(process, with_signal)
    except ProcessLookupError:
        pass


class LostPeerTest(unittest.TestCase):

    def expect_told(self, job, since, waited_in=""):
        """Each survivor names the lost rank after the timeout, and ends with 1."""
        survivors = [rank for rank in range(NUM_RANKS) if rank != LOST]
        ended = wait_until(lambda: all(job.code(rank) is not None for rank in survivors))
        took = time.monotonic() - since
        said = "\n".join(f"{rank}: {job.code(rank)}: {job.output(rank)}" for rank in survivors)
        self.assertTrue(ended, f"not all ended:\n{said}")
        self.assertGreater(took, 0.9 * TIMEOUT_S, said)
        for rank in survivors:
            self.assertEqual(job.code(rank), 1, said)
            match = re.search(rf"^rank {rank} waited {TIMEOUT_S} s {waited_in}for (ranks? [^:]+), in vain",
                              job.output(rank), re.MULTILINE)
            self.assertTrue(match, said)
            if waited_in:  # a call of MPI, which does not say whom it waits for: found by looking
                self.assertEqual(match[1], f"rank {LOST}", said)
            self.assertIn(str(LOST), re.findall(r"\d+", match[1]), said)

    def expect_nothing_left(self, job):
        kill(job.process(LOST), signal.SIGKILL)  # Where it is stopped or sleeps, the survivors are gone and it is not.
        self.assertTrue(wait_until(lambda: job.launcher.poll() is not None), "the launcher still runs")
        self.assertEqual(processes_with(str(job.folder)), [])

    def lose(self, with_signal, *arguments, waited_in=""):
        with Job(*arguments) as job:
            self.assertTrue(wait_until(job.is_running), [job.output(rank) for rank in range(NUM_RANKS)])
            time.sleep(0.2)
            kill(job.process(LOST), with_signal)
            self.expect_told(job, time.monotonic(), waited_in)
            self.expect_nothing_left(job)

    def test_killed(self):
        self.lose(signal.SIGKILL)

    def test_stopped(self):
        self.lose(signal.SIGSTOP)

    def test_killed_in_a_ring(self):
        """Each waits for its neighbour only, and still learns who holds all of them up."""
        self.lose(signal.SIGKILL, "--waits-in", "ring")

    def test_stopped_in_a_ring(self):
        self.lose(signal.SIGSTOP, "--waits-in", "ring")

    def test_killed_during_allreduce(self):
        self.lose(signal.SIGKILL, "--waits-in", "allreduce", waited_in="in MPI_Allreduce ")

    def test_stopped_during_allreduce(self):
        self.lose(signal.SIGSTOP, "--waits-in", "allreduce", waited_in="in MPI_Allreduce ")

    def test_never_started(self):
        with Job("--absent", str(LOST)) as job:
            started = time.monotonic()
            self.expect_told(job, started, waited_in="in MPI_Init ")
            self.expect_nothing_left(job)

    def test_nobody_lost(self):
        with Job("--steps", "20") as job:
            self.assertTrue(wait_until(lambda: all(job.code(rank) is not None for rank in range(NUM_RANKS))))
            self.assertEqual([job.code(rank) for rank in range(NUM_RANKS)], [0] * NUM_RANKS)
            self.expect_nothing_left(job)


if __name__ == "__main__":
    LAUNCHER, PEER = sys.argv[1:3]
    if not mpirun.is_openmpi(LAUNCHER):
        print(f"skipped: {LAUNCHER} is not OpenMPI's, and others end all ranks when one is lost before they can report")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)

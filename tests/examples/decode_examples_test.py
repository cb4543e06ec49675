"""The decode examples print one and the same line, in C++ and C, on any number of ranks, be they threads or processes.

    decode_examples_test.py in-process DISTRIBUTED_DECODE DECODE
    decode_examples_test.py mpirun DISTRIBUTED_DECODE DECODE LAUNCHER

Exits with 77, and says why, where there is no OpenMPI.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "mpi"))
import mpirun  # pylint: disable=wrong-import-position

CPP = ""
C = ""
LAUNCHER = ""


def run(line, environment=None):
    return subprocess.run(line, env=environment, capture_output=True, text=True, timeout=100, check=False)


def run_ranks(num_ranks, program):
    return run(*mpirun.command(LAUNCHER, num_ranks, program))


class DecodeExamplesTest(unittest.TestCase):

    def printed(self, ended):
        """What a run printed: the line, once, and nothing else."""
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertRegex(ended.stdout, r"\A8 tokens, fingerprint [0-9a-f]{16}\n\Z")
        return ended.stdout

    def one_rank(self):
        return self.printed(run([CPP, "1"]))


class InProcess(DecodeExamplesTest):

    def test_same_line_on_any_number_of_ranks(self):
        for arguments in [[], ["2"], ["3"], ["7"]]:
            self.assertEqual(self.printed(run([CPP, *arguments])), self.one_rank(), arguments)

    def test_same_line_in_c(self):
        self.assertEqual(self.printed(run([C])), self.one_rank())

    def test_says_what_is_wrong(self):
        for ranks in ["0", "-1", "nonsense", "65", "100000000000"]:
            ended = run([CPP, ranks])
            self.assertEqual((ended.returncode, ended.stdout), (1, ""), ranks)
            self.assertRegex(ended.stderr, r"\Adistributed_decode: .*ranks.*\n\Z")


class Mpirun(DecodeExamplesTest):

    def test_same_line_on_any_number_of_ranks(self):
        for num_ranks in [1, 2, 4]:
            self.assertEqual(self.printed(run_ranks(num_ranks, [CPP])), self.one_rank(), num_ranks)

    def test_same_line_in_c(self):
        for num_ranks in [1, 3]:
            self.assertEqual(self.printed(run_ranks(num_ranks, [C])), self.one_rank(), num_ranks)


def why_skipped():
    if not LAUNCHER:
        return "the library was built without MPI"
    if not shutil.which(LAUNCHER):
        return f"there is no {LAUNCHER}"
    if not mpirun.is_openmpi(LAUNCHER):
        return f"{LAUNCHER} is not OpenMPI's"
    return None


def main():
    global CPP, C, LAUNCHER
    mode, CPP, C = sys.argv[1:4]
    LAUNCHER = sys.argv[4] if mode == "mpirun" else ""
    reason = why_skipped() if mode == "mpirun" else None
    if reason:
        print(f"skipped: {reason}")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], defaultTest="Mpirun" if mode == "mpirun" else "InProcess", verbosity=2)


if __name__ == "__main__":
    main()

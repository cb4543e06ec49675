#!/usr/bin/env python3
"""Runs the pando program as several ranks under mpirun, as a user does.

    mpi_program_test.py LAUNCHER PROGRAM [unittest options]
"""

import json
import pathlib
import re
import shlex
import subprocess
import sys
import unittest

import mpirun

LAUNCHER = ""
PROGRAM = ""
NUM_RANKS = 4
MODELS = pathlib.Path(__file__).resolve().parents[1] / "parity/models"
VOCABULARY = MODELS / "vocab-gpt-2.gguf"
MODEL = MODELS / "llama-q4_1.gguf"

# Rank 1 runs something else than the others. A code is told by its rank: a launcher that goes on without a lost rank
# does not pass it on.
RANK_1_DIFFERS = ('if [ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 1 ]; then %s; fi; '
                  '"$@"; code=$?; echo "code $code" >&2; exit $code')


def run(*program, recover=False):
    line, environment = mpirun.command(LAUNCHER, NUM_RANKS, list(program), recover=recover)
    return subprocess.run(line, env=environment, capture_output=True, text=True, timeout=120, check=False)


def complaints(result):
    """What the program said; mpirun has its own words about it."""
    return re.findall(r"^pando: .*$", result.stderr, re.MULTILINE)


class TopologyTest(unittest.TestCase):
    def test_every_process_is_a_rank_and_the_first_one_prints(self):
        for ranks in ([], ["--ranks", str(NUM_RANKS)]):
            result = run(PROGRAM, "topology", "-o", "json", *ranks)
            self.assertEqual(result.returncode, 0, result.stderr)
            topology = json.loads(result.stdout)
            self.assertEqual(topology["transport"], "mpi")
            self.assertEqual([rank["rank"] for rank in topology["ranks_in_tree_order"]], list(range(NUM_RANKS)))
            self.assertEqual(len({rank["process"] for rank in topology["ranks_in_tree_order"]}), NUM_RANKS)
            self.assertEqual({rank["node"] for rank in topology["ranks_in_tree_order"]}, {0})
            roles = {row["schedule"]: row["role"] for row in topology["schedules"]}
            self.assertIn(roles["allreduce"], ("chosen", "candidate"), "MPI has its own")

    def test_help_is_printed_once(self):
        result = run(PROGRAM, "topology", "--help")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.count("Usage:"), 1)


class OneProcessTest(unittest.TestCase):
    def test_what_needs_no_ranks_is_done_once(self):
        for arguments in (["platforms"], ["inspect", str(VOCABULARY)], ["tokenize", "-m", str(VOCABULARY), "-p", "ab"]):
            alone = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=60, check=True)
            result = run(PROGRAM, *arguments)
            self.assertEqual((result.returncode, result.stdout), (0, alone.stdout), result.stderr)


class BadInputTest(unittest.TestCase):
    def complaint_about(self, *arguments):
        return self.complaint_about_run(PROGRAM, *arguments)

    def complaint_about_run(self, *command):
        result = run(*command)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertEqual(result.stdout.count("rank 0"), 0, result.stdout)
        self.assertEqual(len(complaints(result)), 1, result.stderr)
        return complaints(result)[0]

    def test_another_number_of_ranks(self):
        complaint = self.complaint_about("topology", "--ranks", "3")
        self.assertIn("--ranks is 3, and mpirun started 4 processes", complaint)

    def test_what_is_wrong_is_said_once(self):
        self.assertIn("--bogus", self.complaint_about("topology", "--bogus"))
        self.assertIn("--slots 4", self.complaint_about("topology", "--slots", "2"))
        self.assertIn("did you mean", self.complaint_about("topologie"))

    def test_the_short_help_is_printed_once(self):
        result = run(PROGRAM)
        self.assertEqual((result.returncode, complaints(result)), (0, []), result.stderr)
        self.assertEqual(result.stdout.count("a conversation"), 1, result.stdout)

    def test_a_missing_model_is_said_once(self):
        self.assertIn("/nowhere/x.gguf", self.complaint_about("generate", "-m", "/nowhere/x.gguf", "-p", "a"))
        self.assertIn("/nowhere/x.gguf", self.complaint_about("inspect", "/nowhere/x.gguf"))

    def test_ranks_with_other_options(self):
        for arguments, option, first, other in (
                (["topology"], "--batch", "1", "2"),
                (["bench", "decode", "--contexts", "1K", "--repeats", "2"], "--strategies", "tree", "tree,ring"),
                (["bench", "decode", "--contexts", "1K", "--repeats", "2"], "--heads", "32", "64"),
                (["generate", "-m", str(MODEL), "-p", "a", "-n", "2"], "--attention", "tree", "ring")):
            with self.subTest(" ".join(arguments + [option])):
                of_rank_1 = shlex.join([PROGRAM, *arguments, option, other])
                complaint = self.complaint_about_run("bash", "-c", RANK_1_DIFFERS % f"exec {of_rank_1}", "bash", PROGRAM,
                                                     *arguments, option, first)
                self.assertRegex(complaint, f"rank 1 was started with .*{option} {other}.* and rank 0 with .*{option} {first}"
                                            ".*: start all ranks with the same options")


class FailureTest(unittest.TestCase):
    def test_every_rank_says_that_it_waited_for_one_that_does_not_start(self):
        if not mpirun.is_openmpi(LAUNCHER):
            self.skipTest("other launchers end all ranks when one is lost, before they can report")
        result = run("bash", "-c", RANK_1_DIFFERS % "exec sleep 9", "bash", PROGRAM, "topology", "--timeout", "4",
                     recover=True)
        self.assertEqual(re.findall(r"^code (\d+)$", result.stderr, re.MULTILINE), ["1"] * (NUM_RANKS - 1))
        said = sorted(complaints(result))
        self.assertEqual(len(said), NUM_RANKS - 1, result.stderr)
        for rank, complaint in zip((0, 2, 3), said):
            self.assertRegex(complaint, rf"^pando: rank {rank} waited 4 s .*for rank 1,")


if __name__ == "__main__":
    LAUNCHER, PROGRAM = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])

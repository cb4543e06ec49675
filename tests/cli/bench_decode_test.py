#!/usr/bin/env python3
"""Runs `pando bench decode` as a user does, in process and under mpirun.

    bench_decode_test.py PROGRAM MPIRUN_PY [LAUNCHER]      without LAUNCHER, only in process
"""

import csv
import io
import json
import os
import pty
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

PROGRAM = ""
MPIRUN = []

# Small enough to be over in a moment; the figures mean nothing, their form is what is tested.
SMALL = ["bench", "decode", "--contexts", "300,1K", "--heads", "4", "--kv-heads", "2", "--head-dim", "64",
         "--threads", "1", "-r", "3"]
KEYS = ["strategy", "schedule", "ranks", "context", "median_us", "spread_us", "compute_us", "merge_us",
        "messages_per_rank", "bytes_per_rank", "formula_bytes_per_rank", "peak_kv_bytes", "fingerprint"]
DEFAULT_STRATEGIES = ["tree", "direct", "allreduce", "paper", "ring"]
ALL_STRATEGIES = [*DEFAULT_STRATEGIES, "butterfly", "two-level", "reduce-scatter"]


def run(*args, mpi_ranks=None, **kwargs):
    line = [PROGRAM, *args]
    if mpi_ranks:
        line = [sys.executable, "-B", MPIRUN[0], "--launcher", MPIRUN[1], "-n", str(mpi_ranks), *line]
    return subprocess.run(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, check=False,
                          **kwargs)


class DecodeTest(unittest.TestCase):
    def rows_of(self, *args, mpi_ranks=None):
        result = run(*SMALL, *args, "-o", "json", mpi_ranks=mpi_ranks)
        self.assertEqual(result.returncode, 0, result.stderr)
        if not mpi_ranks:
            self.assertEqual(result.stderr, "", "nothing goes to stderr in a pipe")
        return json.loads(result.stdout)

    def complaint_about(self, *args):
        """Bad input: exit code 2, nothing on stdout, one line on stderr."""
        result = run(*SMALL, *args)
        self.assertEqual(result.returncode, 2, f"{args}: {result.stdout}{result.stderr}")
        self.assertEqual(result.stdout, "", args)
        self.assertRegex(result.stderr, r"\Apando: [^\n]+\n\Z", args)
        return result.stderr

    def assert_same_bits(self, rows):
        """One fingerprint per context; returns them."""
        fingerprints = {}
        for row in rows:
            self.assertRegex(row["fingerprint"], r"\A[0-9a-f]{16}\Z")
            if row["strategy"] != "paper":
                fingerprints.setdefault(row["context"], set()).add(row["fingerprint"])
        self.assertEqual({len(same) for same in fingerprints.values()}, {1}, fingerprints)
        return fingerprints


class TableTest(DecodeTest):
    def test_a_row_for_each_rank_count_context_and_strategy(self):
        rows = self.rows_of("--ranks", "1,2,3")
        self.assertEqual([(row["ranks"], row["context"], row["strategy"]) for row in rows],
                         [(ranks, context, strategy) for ranks in (1, 2, 3) for context in (300, 1024)
                          for strategy in DEFAULT_STRATEGIES])
        for row in rows:
            self.assertEqual(list(row)[:len(KEYS)], KEYS)
            self.assertGreater(row["median_us"], 0)
            self.assertEqual(row["mpi_collectives"], 0)
            self.assertEqual(row["repeats"], 3)
            if row["ranks"] == 1:
                self.assertEqual(row["bytes_per_rank"], 0)

    def test_same_bits_on_any_number_of_ranks_but_for_paper(self):
        rows = self.rows_of("--ranks", "1,2,3,8", "--strategies", ",".join(ALL_STRATEGIES))
        fingerprints = self.assert_same_bits(rows)
        self.assertNotEqual(fingerprints[300], fingerprints[1024])
        paper = {row["fingerprint"] for row in rows if row["strategy"] == "paper" and row["context"] == 1024}
        self.assertGreater(len(paper), 1)

    def test_other_formats(self):
        args = [*SMALL, "--ranks", "2", "--contexts", "300", "--strategies", "tree,ring"]
        lines = [json.loads(line) for line in run(*args, "-o", "jsonl").stdout.splitlines()]
        self.assertEqual([row["strategy"] for row in lines], ["tree", "ring"])
        table = list(csv.DictReader(io.StringIO(run(*args, "-o", "csv").stdout)))
        self.assertEqual(table[1]["fingerprint"], lines[1]["fingerprint"])
        markdown = run(*args).stdout.splitlines()
        self.assertEqual([cell.strip() for cell in markdown[0].strip("|").split("|")][:len(KEYS)], KEYS)
        self.assertEqual(len(markdown), 4)

    def test_rows_before_a_failure_are_printed(self):
        result = run(*SMALL, "--ranks", "2", "--strategies", "tree", "--contexts", "300,1000000M", "-o", "jsonl")
        self.assertEqual(result.returncode, 2)
        self.assertEqual(json.loads(result.stdout)["context"], 300)
        self.assertRegex(result.stderr, r"\Apando: [^\n]*GiB[^\n]*shorter context[^\n]*\n\Z")

    def test_progress_shows_on_a_terminal_and_is_taken_away(self):
        reader, writer = pty.openpty()
        subprocess.run([PROGRAM, *SMALL, "--ranks", "2"], stdout=subprocess.DEVNULL, stderr=writer, timeout=120,
                       check=True)
        os.close(writer)
        shown = os.read(reader, 4096).decode()
        os.close(reader)
        self.assertIn("2 ranks, 300 tokens: filling the cache", shown)
        self.assertTrue(shown.endswith("\r\033[K"), repr(shown))


class PlotTest(DecodeTest):
    def test_figure_is_xml_with_a_line_for_each_strategy_in_each_panel(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "decode.svg")
            self.rows_of("--ranks", "2,3", "--plot", path)
            svg = xml.etree.ElementTree.parse(path).getroot()
            self.assertEqual(os.listdir(folder), ["decode.svg"])
        classes = [element.get("class", "") for element in svg.iter()]
        self.assertEqual(classes.count("panel"), 4)
        self.assertEqual(len([name for name in classes if name.startswith("line ")]), 4 * len(DEFAULT_STRATEGIES))
        self.assertEqual(len([name for name in classes if name.startswith("mark ")]), 8 * len(DEFAULT_STRATEGIES))

    def test_path_that_cannot_be_written_is_refused_before_measuring(self):
        with tempfile.TemporaryDirectory() as folder:
            for path in (os.path.join(folder, "no", "decode.svg"), folder):
                with self.subTest(path=path):
                    self.assertIn(path, self.complaint_about("--ranks", "2", "--plot", path))

    def test_there_is_no_figure_after_a_failure(self):
        with tempfile.TemporaryDirectory() as folder:
            self.complaint_about("--ranks", "2", "--contexts", "1000000M", "--plot", os.path.join(folder, "a.svg"))
            self.assertEqual(os.listdir(folder), [])


class BadInputTest(DecodeTest):
    def test_values_are_named(self):
        for option, *values in (
                ("--strategies", "star", "Tree"),
                ("--contexts", "0", "-1", "8Q"),
                ("--ranks", "0", "65", "many"),
                ("--heads", "7", "0"),
                ("--kv-type", "f8"),
                ("--threads", "-1", "100000"),
                ("--repeats", "0"),
                ("--budget", "-1"),
                ("--timeout", "0"),
                ("-o", "xml")):
            for value in values:
                with self.subTest(option=option, value=value):
                    complaint = self.complaint_about(option, value)
                    self.assertRegex(complaint, rf"(?<![\w.-]){re.escape(value)}(?!\w)")
                    self.assertRegex(complaint, r"must|use|at least", "says what is allowed")

    def test_empty_lists_are_refused(self):
        for option in ("--contexts", "--ranks", "--strategies"):
            with self.subTest(option=option):
                self.complaint_about(option, "2,,3")


class MpiTest(DecodeTest):
    def setUp(self):
        if len(MPIRUN) < 2:
            self.skipTest("this build has no MPI")

    def test_same_bits_as_in_process_and_the_table_once(self):
        rows = self.rows_of("--strategies", ",".join(ALL_STRATEGIES), mpi_ranks=2)
        self.assertEqual(len(rows), 2 * len(ALL_STRATEGIES))
        self.assertEqual({row["ranks"] for row in rows}, {2})
        self.assertEqual({row["transport"] for row in rows}, {"mpi"})
        fingerprints = self.assert_same_bits(rows)
        self.assertEqual(fingerprints, self.assert_same_bits(self.rows_of("--ranks", "3", "--strategies", "tree")))

    def test_collectives_of_mpi_are_told_from_messages(self):
        rows = {row["strategy"]: row for row in self.rows_of("--contexts", "300", mpi_ranks=2)}
        self.assertEqual(rows["paper"]["mpi_collectives"], 3)
        self.assertEqual(rows["paper"]["messages_per_rank"], 3)
        self.assertEqual(rows["paper"]["bytes_per_rank"], 4 * (64 + 2) * 4, "its operands")
        self.assertEqual(rows["allreduce"]["mpi_collectives"], 1)
        self.assertEqual(rows["direct"]["mpi_collectives"], 0)
        self.assertEqual(rows["direct"]["messages_per_rank"], 1)

    def test_figure_is_written_once(self):
        with tempfile.TemporaryDirectory() as folder:
            self.rows_of("--plot", os.path.join(folder, "decode.svg"), mpi_ranks=2)
            self.assertEqual(os.listdir(folder), ["decode.svg"])

    def test_bad_input_is_said_once(self):
        for args in (["--ranks", "3"], ["--strategies", "star"], ["--contexts", "1000000M"],
                     ["--plot", "/no/such/folder/a.svg"]):
            with self.subTest(args=args):
                result = run(*SMALL, *args, mpi_ranks=2)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertEqual(result.stdout, "")
                self.assertEqual(len(re.findall(r"^pando: ", result.stderr, re.MULTILINE)), 1, result.stderr)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    MPIRUN = sys.argv[1:3]
    del sys.argv[1:3]
    unittest.main()

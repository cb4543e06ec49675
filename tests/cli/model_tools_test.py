#!/usr/bin/env python3
"""Runs `pando bench model`, `pando perplexity` and `pando logits` as a user does, in process and under mpirun, on the
real model. What a model says is tested elsewhere; here it is the commands.

    model_tools_test.py PROGRAM MPIRUN_PY [LAUNCHER]      without LAUNCHER, only in process
"""

import csv
import io
import json
import math
import os
import pathlib
import pty
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/model"))
import real_model  # noqa: E402

PROGRAM = ""
MPIRUN = []
MODEL = real_model.path()
TEXT = str(ROOT / "docs/theory.md")
LLAMA_BENCH_KEYS = ["model_filename", "model_type", "model_size", "model_n_params", "n_batch", "n_threads", "type_k",
                    "type_v", "n_prompt", "n_gen", "n_depth", "test_time", "avg_ns", "stddev_ns", "avg_ts",
                    "stddev_ts", "samples_ns", "samples_ts"]
OWN_KEYS = ["ranks", "attention", "schedule", "logits_fingerprint"]


def run(*args, mpi_ranks=None, **kwargs):
    line = [PROGRAM, *args]
    if mpi_ranks:
        line = [sys.executable, "-B", MPIRUN[0], "--launcher", MPIRUN[1], "-n", str(mpi_ranks), *line]
    kwargs.setdefault("stdin", subprocess.DEVNULL if "input" not in kwargs else None)
    return subprocess.run(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=200, check=False,
                          **kwargs)


class ToolTest(unittest.TestCase):
    def output_of(self, *args, mpi_ranks=None, **kwargs):
        result = run(*args, mpi_ranks=mpi_ranks, **kwargs)
        self.assertEqual(result.returncode, 0, result.stderr)
        if not mpi_ranks:
            self.assertEqual(result.stderr, "", "nothing goes to stderr in a pipe")
        return result.stdout

    def complaint_about(self, *args, code=2, **kwargs):
        """Nothing on stdout, one line on stderr."""
        result = run(*args, **kwargs)
        self.assertEqual(result.returncode, code, f"{args}: {result.stdout}{result.stderr}")
        self.assertEqual(result.stdout, "", args)
        self.assertRegex(result.stderr, r"\Apando: [^\n]+\n\Z", args)
        return result.stderr


class BadInputTest(ToolTest):
    """What needs no model."""

    def test_a_model_must_be_named_and_be_there(self):
        for command in (["bench", "model"], ["perplexity", "-f", TEXT], ["logits", "-p", "a"]):
            with self.subTest(command=command):
                self.assertIn("-m", self.complaint_about(*command, env=real_model.WITHOUT_DEFAULT))
                self.assertIn("/no/such/model.gguf", self.complaint_about(*command, "-m", "/no/such/model.gguf"))

    def test_values_are_named(self):
        for command, option, *values in (
                ("bench model", "-p", "-1", "8Q"), ("bench model", "-n", "many"), ("bench model", "-d", "-1"),
                ("bench model", "-t", "-1"), ("bench model", "--ranks", "0", "65"), ("bench model", "-b", "-1"),
                ("bench model", "--attention", "star"), ("bench model", "--kv-type", "f8"),
                ("bench model", "-r", "0"), ("bench model", "-o", "xml"),
                ("perplexity", "--stride", "-1"), ("perplexity", "--chunks", "few"), ("perplexity", "-o", "csv"),
                ("perplexity", "-c", "-4"), ("logits", "--top", "-1"), ("logits", "-o", "xml")):
            for value in values:
                with self.subTest(command=command, option=option, value=value):
                    complaint = self.complaint_about(*command.split(), "-m", "model.gguf", option, value)
                    self.assertIn(value.split(",")[-1], complaint)
                    self.assertRegex(complaint, r"must|use|at least", "says what is allowed")

    def test_options_that_do_not_go_together(self):
        self.assertIn("nothing to measure", self.complaint_about("bench", "model", "-m", "m.gguf", "-p", "0", "-n", "0"))


@unittest.skipUnless(MODEL, real_model.NONE)
class BenchModelTest(ToolTest):
    def args(self, *more):
        return ["bench", "model", "-m", MODEL, "-p", "6", "-n", "2", "-r", "2", *more]

    def test_rows_and_keys_are_those_of_llama_bench(self):
        rows = json.loads(self.output_of(*self.args("-d", "0,70", "--ranks", "1,3", "--attention", "tree,ring",
                                                    "-t", "1", "-o", "json")))
        self.assertEqual([(row["ranks"], row["attention"], row["test"]) for row in rows],
                         [(ranks, attention, test) for ranks in (1, 3)
                          for tests in (("pp6", "tg2"), ("pp6 @ d70", "tg2 @ d70"))
                          for attention in ("tree", "ring") for test in tests])
        for row in rows:
            for key in LLAMA_BENCH_KEYS + OWN_KEYS:
                self.assertIn(key, row)
            self.assertEqual(row["n_prompt"] + row["n_gen"], 6 if row["test"].startswith("pp") else 2)
            self.assertEqual(len(row["samples_ts"]), 2)
            self.assertAlmostEqual(row["avg_ts"], sum(row["samples_ts"]) / 2, delta=1e-3 * row["avg_ts"])
            self.assertEqual(row["machine_gb_per_s"] is None, row["n_gen"] == 0)
        fingerprints = {}
        for row in rows:
            fingerprints.setdefault(row["test"], set()).add(row["logits_fingerprint"])
        self.assertEqual(sorted(map(len, fingerprints.values())), [1, 1, 1, 1], fingerprints)
        self.assertEqual(len(set.union(*fingerprints.values())), 4)

    def test_same_bits_for_any_threads_batch_and_prefill_but_not_for_other_kv_types(self):
        rows = json.loads(self.output_of(*self.args("-p", "40", "-n", "0", "-r", "1", "-t", "1,2", "-b", "7,512",
                                                    "--kv-type", "f16,q8_0", "-d", "65", "-o", "json")))
        self.assertEqual(len(rows), 8)
        by_type = {kv: {row["logits_fingerprint"] for row in rows if row["type_k"] == kv} for kv in ("f16", "q8_0")}
        self.assertEqual([len(same) for same in by_type.values()], [1, 1])
        self.assertNotEqual(by_type["f16"], by_type["q8_0"])

    def test_formats(self):
        args = self.args("-p", "0", "-n", "1", "-r", "1")
        table = list(csv.DictReader(io.StringIO(self.output_of(*args, "-o", "csv"))))
        self.assertEqual(table[0]["test"], "tg1")
        line = json.loads(self.output_of(*args, "-o", "jsonl"))
        self.assertEqual(line["logits_fingerprint"], table[0]["logits_fingerprint"])
        markdown = self.output_of(*args)
        self.assertEqual(len(markdown.splitlines()), 3)
        self.assertIn("| tg1 ", markdown)
        with sqlite3.connect(":memory:") as database:
            for _ in range(2):
                database.executescript(self.output_of(*args, "-o", "sql"))
            rows = database.execute("SELECT test, n_gen, logits_fingerprint FROM pando_bench_model").fetchall()
        self.assertEqual(rows, [("tg1", 1, line["logits_fingerprint"])] * 2)

    def test_rows_before_a_failure_are_printed(self):
        result = run(*self.args("-p", "0", "-n", "1", "-r", "1", "-d", "0,1000M", "--ranks", "2", "-o", "jsonl"))
        self.assertEqual(result.returncode, 2)
        self.assertEqual(json.loads(result.stdout)["test"], "tg1")
        self.assertRegex(result.stderr, r"\Apando: [^\n]*iB[^\n]*shorter context[^\n]*\n\Z")

    def test_ctrl_c_prints_what_was_measured(self):
        reader, writer = pty.openpty()
        process = subprocess.Popen([PROGRAM, *self.args("-p", "0", "-n", "1,16K", "-r", "1", "-o", "jsonl")],
                                   stdout=subprocess.PIPE, stderr=writer, text=True)
        shown = ""
        while "tg16384: " not in shown:
            shown += os.read(reader, 4096).decode()
        self.assertIn("1 rank, tree, tg16384", shown)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
        os.close(writer)
        shown = os.read(reader, 1 << 16).decode()
        os.close(reader)
        self.assertEqual(process.returncode, 130)
        self.assertEqual(json.loads(output)["test"], "tg1")
        self.assertRegex(shown, r"pando: interrupted[^\n]*\r\n\Z")

    def test_under_mpirun_processes_are_ranks(self):
        if len(MPIRUN) < 2:
            self.skipTest("this build has no MPI")
        args = self.args("-r", "1", "-d", "66", "-t", "1", "-o", "json")
        rows = json.loads(self.output_of(*args, mpi_ranks=2))
        self.assertEqual([(row["ranks"], row["transport"]) for row in rows], [(2, "mpi")] * 2)
        alone = json.loads(self.output_of(*args))
        self.assertEqual([row["logits_fingerprint"] for row in rows], [row["logits_fingerprint"] for row in alone])

    def test_under_mpirun_a_failure_is_said_once_after_the_rows(self):
        if len(MPIRUN) < 2:
            self.skipTest("this build has no MPI")
        result = run(*self.args("-p", "0", "-r", "1", "-t", "1", "-d", "0,1000M", "-o", "jsonl"), mpi_ranks=2)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertEqual(json.loads(result.stdout)["test"], "tg2")
        self.assertEqual(len(re.findall(r"^pando: .*shorter context", result.stderr, re.MULTILINE)), 1, result.stderr)
        self.assertEqual(len(re.findall(r"^pando: ", result.stderr, re.MULTILINE)), 1, result.stderr)


@unittest.skipUnless(MODEL, real_model.NONE)
class PerplexityTest(ToolTest):
    def json_of(self, *args, **kwargs):
        return json.loads(self.output_of("perplexity", "-m", MODEL, *args, "-o", "json", **kwargs))

    def test_windows_and_figures(self):
        result = self.json_of("-f", TEXT, "-c", "64", "--chunks", "3")
        self.assertEqual((result["windows"], result["tokens_scored"], result["n_ctx"]), (3, 3 * 31, 64))
        self.assertGreater(result["tokens"], 3 * 64)
        self.assertAlmostEqual(result["perplexity"], math.exp(result["mean_negative_log_likelihood"]), places=9)
        # It is English, and the model has learned English.
        self.assertTrue(3 < result["perplexity"] < 1000, result)
        self.assertTrue(0 < result["standard_error"] < result["perplexity"], result)
        self.assertGreater(result["tokens_per_second"], 0)

    def test_same_bits_on_any_ranks_threads_batch_and_attention(self):
        def bits(*args, **kwargs):
            result = self.json_of("-f", TEXT, "-c", "48", "--chunks", "2", *args, **kwargs)
            return (result["perplexity"], result["standard_error"], result["logits_fingerprint"])

        alone = bits("-t", "1")
        self.assertEqual(bits("--ranks", "3", "-t", "1", "-b", "7"), alone)
        self.assertEqual(bits("--ranks", "2", "--attention", "ring"), alone)
        if len(MPIRUN) >= 2:
            self.assertEqual(bits("-t", "1", mpi_ranks=2), alone)

    def test_stride_scores_more_tokens_with_more_context(self):
        result = self.json_of("-f", TEXT, "-c", "64", "--stride", "8", "--chunks", "3")
        self.assertEqual((result["windows"], result["tokens_scored"], result["stride"]), (3, 24, 8))

    def test_one_window_of_the_whole_text_from_standard_input(self):
        text = pathlib.Path(TEXT).read_text(encoding="utf-8")[:2000]
        result = self.json_of("-c", "256", input=text)
        self.assertEqual(result["tokens_scored"], result["windows"] * 127)
        table = self.output_of("perplexity", "-m", MODEL, "-c", "256", input=text)
        self.assertIn(f"{result['perplexity']:.4f}", table)
        self.assertIn(result["logits_fingerprint"], table)

    def test_errors_are_sentences(self):
        command = ["perplexity", "-m", MODEL]
        self.assertIn("use a longer text", self.complaint_about(*command, "-p", "short"))
        self.assertIn("/no/such/text", self.complaint_about(*command, "-f", "/no/such/text"))
        self.assertIn("window", self.complaint_about(*command, "-f", TEXT, "-c", "3"))
        self.assertIn("stride", self.complaint_about(*command, "-f", TEXT, "-c", "16", "--stride", "16"))

    def test_running_estimate_shows_on_a_terminal_and_is_taken_away(self):
        reader, writer = pty.openpty()
        subprocess.run([PROGRAM, "perplexity", "-m", MODEL, "-f", TEXT, "-c", "32", "--chunks", "3"],
                       stdout=subprocess.DEVNULL, stderr=writer, timeout=100, check=True)
        os.close(writer)
        shown = os.read(reader, 1 << 16).decode()
        os.close(reader)
        self.assertRegex(shown, r"64 of 96 tokens: perplexity [\d.]+ \+- [\d.]+, \d+ tokens/s, \d+ s left")
        self.assertTrue(shown.endswith("\r\033[K"), repr(shown))


@unittest.skipUnless(MODEL, real_model.NONE)
class LogitsTest(ToolTest):
    def rows_of(self, *args, **kwargs):
        return json.loads(self.output_of("logits", "-m", MODEL, *args, "-o", "json", **kwargs))

    def test_likeliest_tokens_after_a_prompt(self):
        rows = self.rows_of("-p", "The capital of France is", "--top", "5")
        self.assertEqual(len(rows), 5)
        self.assertEqual(rows[0]["piece"], " Paris")
        self.assertEqual([row["logit"] for row in rows], sorted((row["logit"] for row in rows), reverse=True))
        for row in rows:
            ratio = math.exp(row["logit"] - rows[0]["logit"])
            self.assertAlmostEqual(row["probability"] / rows[0]["probability"], ratio, places=5)
        self.assertEqual(len({row["logits_fingerprint"] for row in rows}), 1)

    def test_every_position_and_every_way_to_give_a_prompt(self):
        text = "Once upon a time"
        every = self.rows_of("-p", text, "--all", "--top", "1", "-b", "3")
        self.assertEqual([row["position"] for row in every], list(range(len(every))))
        last = self.rows_of("--top", "1", input=text)
        self.assertEqual(last, every[-1:])
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write(text)
            file.flush()
            self.assertEqual(self.rows_of("-f", file.name, "--top", "1", "--ranks", "3", "-t", "1"), last)

    def test_all_logits_of_tokens_by_number(self):
        rows = self.rows_of("--tokens", "504,3575,282,4649,314", "--top", "0")
        self.assertEqual(sorted(row["token"] for row in rows), list(range(len(rows))))
        total = math.fsum(math.exp(row["logit"] - rows[0]["logit"]) for row in rows)
        self.assertAlmostEqual(rows[0]["probability"], 1 / total, places=6)

    def test_errors_are_sentences(self):
        command = ["logits", "-m", MODEL]
        self.assertIn("no token 1000000", self.complaint_about(*command, "--tokens", "1,1000000"))
        self.assertIn("/no/such/text", self.complaint_about(*command, "-f", "/no/such/text"))
        self.assertIn("no tokens", self.complaint_about(*command, "-p", ""))


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    MPIRUN = sys.argv[1:3]
    del sys.argv[1:3]
    unittest.main()

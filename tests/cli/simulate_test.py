#!/usr/bin/env python3
"""Runs `pando simulate` as a user does, and holds what it counts against real runs.

    simulate_test.py PROGRAM MPIRUN_PY [LAUNCHER]      without LAUNCHER, real runs are only in process

What needs pando-simulator is skipped where there is none beside PROGRAM; with PANDO_REQUIRE_SIMULATOR=1 it fails.
"""

import csv
import io
import json
import math
import os
import pathlib
import pty
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

PROGRAM = ""
MPIRUN = []

KEYS = ["platform", "nodes", "ranks", "model", "heads", "kv_heads", "head_dim", "kv_type", "batch", "tokens", "context", "groups",
        "strategy", "schedule", "step_us", "weight_us", "kv_us", "merge_us", "gather_us", "messages_per_rank", "bytes_per_rank",
        "mpi_collectives", "peak_kv_bytes", "fits"]
COUNTED = ["messages_per_rank", "bytes_per_rank", "mpi_collectives", "peak_kv_bytes"]
PLANNED = ["butterfly", "two-level", "direct", "reduce-scatter", "ring"]
COLLECTIVE = ["allreduce", "paper"]


def run(*args, **kwargs):
    return subprocess.run([PROGRAM, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300,
                          check=False, **kwargs)


class SimulateTest(unittest.TestCase):
    def complaint_about(self, *args, code=2, **kwargs):
        """Nothing on stdout, one line on stderr."""
        result = run("simulate", *args, **kwargs)
        self.assertEqual((result.returncode, result.stdout), (code, ""), f"{args}: {result.stderr}")
        self.assertRegex(result.stderr, r"\Apando: [^\n]+\n\Z", args)
        return result.stderr


class WithoutSimulatorTest(SimulateTest):
    def test_bad_input(self):
        here = ["--platform", "dgx-h100"]
        for args, complaint in (
                ([], "needs machines"),
                (["--platform", "abacus"], "unknown platform 'abacus'.*dgx-h100"),
                (["--platform", "./none.json"], "none.json"),
                ([*here, "--strategies", "tree,flood"], "--strategies.*'flood'.*ring"),
                ([*here, "--model", "llama-9"], "unknown model 'llama-9'.*llama-3.1-8b"),
                ([*here, "--model", "llama-3.1-8b", "--shape", "16x128"], "one of the two"),
                ([*here, "--weight-type", "q8_0"], "--weight-type"),
                ([*here, "--tokens", "512"], "--tokens is 512: it is for a --model"),
                ([*here, "--groups", "2"], "--groups is 2: it is for a --model"),
                ([*here, "--model", "smollm2-135m", "--tokens", "0"], "--tokens"),
                ([*here, "--model", "smollm2-135m", "--groups", "0"], "--groups"),
                ([*here, "--model", "smollm2-135m", "--tokens", "512", "--contexts", "100"], "--tokens is 512.*100"),
                ([*here, "--model", "llama-3.1-8b", "--weight-type", "q9"], "--weight-type.*q9"),
                ([*here, "--ranks", "1025"], "--ranks.*1025.*1 to 1024"),
                ([*here, "--nodes", "1..129"], "--nodes.*1..129.*128"),
                ([*here, "--nodes", "1", "--ranks", "2"], "one of the two"),
                (["--platform", "mi300x", "--nodes", "2"], "--nodes.*can only be 1; mi300x has 1 node of 8 ranks"),
                ([*here, "--contexts", "1024G", "--strategies", "tree"], "tree: simulating this takes about [\\d.]+ [GT]iB of memory"),
                ([*here, "--shape", "16"], "--shape"),
                ([*here, "--shape", "x"], "--shape has the value \"x\": it must be heads x head dim"),
                ([*here, "--shape", "16/5x128"], "16 heads cannot share 5 KV heads"),
                ([*here, "--shape", "16x127"], "127"),
                ([*here, "--contexts", "64K..x"], "--contexts.*64K..x"),
                ([*here, "--contexts", "0"], "--contexts"),
                ([*here, "--kv-type", "f8"], "--kv-type.*f8"),
                ([*here, "--batch", "0"], "--batch"),
                ([*here, "--jobs", "0"], "--jobs"),
                ([*here, "--timeout", "-1"], "--timeout"),
                ([*here, "-o", "xml"], "-o"),
                ([*here, "--plot", "/nowhere/at/all.svg"], "--plot"),
                ([*here, "--map", "--strategies", "tree"], "--strategies tree with --map"),
                ([*here, "--ranks", "1024", "--batch", "65536", "--strategies", "allreduce"],
                 "1024 ranks, .* allreduce: simulating this takes about [\\d.]+ TiB of memory")):
            self.assertRegex(self.complaint_about(*args), complaint)

    def test_without_a_simulator_it_says_what_to_install(self):
        with tempfile.TemporaryDirectory() as folder:
            alone = shutil.copy(PROGRAM, folder)
            result = subprocess.run([alone, "simulate", "--platform", "dgx-h100"], capture_output=True, text=True, timeout=60,
                                    check=False, env={**os.environ, "PATH": folder})
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertRegex(result.stderr, r"\Apando: pando-simulator is neither[^\n]*libsimgrid-dev[^\n]*build again\n\Z")

    def test_help(self):
        text = run("simulate", "--help").stdout
        for option in ("--platform", "--nodes", "--ranks", "--contexts", "--strategies", "--shape", "--model", "--batch",
                       "--map", "--jobs", "--timeout", "--plot", "Examples:"):
            self.assertIn(option, text)
        self.assertLessEqual(max(map(len, text.splitlines())), 120)


class WithSimulatorTest(SimulateTest):
    @classmethod
    def setUpClass(cls):
        if pathlib.Path(PROGRAM).with_name("pando-simulator").exists():
            return
        missing = "there is no pando-simulator beside pando: SimGrid was not found when it was built"
        if os.environ.get("PANDO_REQUIRE_SIMULATOR") == "1":
            raise AssertionError(missing)
        raise unittest.SkipTest(missing)

    def output_of(self, *args):
        result = run("simulate", *args)
        self.assertEqual((result.returncode, result.stderr), (0, ""), args)
        return result.stdout

    def rows_of(self, *args):
        return json.loads(self.output_of(*args, "-o", "json"))


class TableTest(WithSimulatorTest):
    ARGS = ("--platform", "dgx-h100", "--ranks", "2,16", "--contexts", "4K..8K", "--strategies", "tree,direct,ring")

    def test_a_limit_of_the_address_space_is_kept_or_named(self):
        def limited(num_bytes):
            return lambda: resource.setrlimit(resource.RLIMIT_AS, (num_bytes, num_bytes))
        result = run("simulate", *self.ARGS, "-o", "json", preexec_fn=limited(8 << 30))
        self.assertEqual((result.returncode, result.stdout), (0, self.output_of(*self.ARGS, "-o", "json")), result.stderr)
        huge = ("--platform", "dgx-h100", "--ranks", "2", "--contexts", "16M", "--strategies", "tree")
        self.assertIn("ulimit -v", run("simulate", *huge, preexec_fn=limited(4 << 30)).stderr)

    def test_a_row_for_each_point_in_the_order_asked_for(self):
        rows = self.rows_of(*self.ARGS)
        self.assertEqual([(row["ranks"], row["context"], row["strategy"]) for row in rows],
                         [(ranks, context, strategy) for ranks in (2, 16) for context in (4096, 8192)
                          for strategy in ("tree", "direct", "ring")])
        for row in rows:
            self.assertEqual(list(row), KEYS)
            self.assertEqual((row["nodes"], row["fits"]), (1 if row["ranks"] == 2 else 2, True))
            self.assertAlmostEqual(row["kv_us"] + row["merge_us"], row["step_us"], delta=0.0011)

    def test_twice_the_same_to_the_last_digit_however_many_at_a_time(self):
        once = self.output_of(*self.ARGS, "-o", "csv", "--jobs", "1")
        self.assertEqual(once, self.output_of(*self.ARGS, "-o", "csv", "--jobs", "1"))
        self.assertEqual(once, self.output_of(*self.ARGS, "-o", "csv", "--jobs", "4"))

    def test_a_point_alone_is_the_point_in_a_sweep(self):
        sweep = self.rows_of(*self.ARGS)
        alone = self.rows_of("--platform", "dgx-h100", "--ranks", "16", "--contexts", "8K", "--strategies", "ring")
        self.assertEqual(alone, sweep[-1:])

    def test_formats_agree(self):
        rows = self.rows_of(*self.ARGS)
        lines = self.output_of(*self.ARGS, "-o", "jsonl").splitlines()
        self.assertEqual([json.loads(line) for line in lines], rows)
        table = list(csv.DictReader(io.StringIO(self.output_of(*self.ARGS, "-o", "csv"))))
        self.assertEqual([float(row["step_us"]) for row in table], [row["step_us"] for row in rows])
        text = self.output_of(*self.ARGS)
        self.assertIn("Simulated, not measured: one attention block, 16 heads on 16 KV heads of 128", text)
        self.assertEqual(len(text.splitlines()), 4 + len(rows))

    def test_a_model_is_layers_of_weights_attention_and_gathers(self):
        args = ("--platform", "rtx-4090", "--model", "llama-3.2-1b")
        rows = self.rows_of(*args, "--contexts", "8K", "--strategies", "tree,ring")
        rows += self.rows_of(*args, "--contexts", "16M", "--strategies", "tree")
        for row in rows:
            parts = row["weight_us"] + row["kv_us"] + row["merge_us"] + row["gather_us"]
            self.assertAlmostEqual(parts, row["step_us"], delta=0.003)
            self.assertGreater(row["weight_us"], 1e3)
            self.assertEqual(row["model"], "llama-3.2-1b")
        # 16 layers of 8 KV heads of 64 in f16, keys and values, half of them; ring has one more layer's worth.
        self.assertEqual([row["peak_kv_bytes"] for row in rows[:2]], [16 * 8 * 64 * 2 * 2 * 4096, 17 * 8 * 64 * 2 * 2 * 4096])
        self.assertEqual([row["fits"] for row in rows], [True, True, False])
        self.assertRegex(self.output_of("--platform", "rtx-4090", "--contexts", "64M", "--strategies", "tree"), r"does not fit \|")

    def test_hand_computed(self):
        # Two H100 in a node read 2^19 tokens each and exchange 16 states of 130 floats.
        row = self.rows_of("--platform", "dgx-h100", "--ranks", "2", "--contexts", "1M", "--strategies", "direct")[0]
        self.assertAlmostEqual(row["kv_us"], 5 + 2**19 * 16 * 128 * 2 * 2 / 3.35e6, delta=0.001)
        message = 16 * 130 * 4
        self.assertAlmostEqual(row["merge_us"], 2.5 + message / 450e3 + 2 * message * 3 / 3.35e6, delta=0.005)

    def test_contexts_far_beyond_any_memory(self):
        for context, tokens in (("512M", 512 << 20), ("1G", 1 << 30)):
            row, = self.rows_of("--platform", "dgx-h100", "--nodes", "1", "--contexts", context, "--strategies", "tree")
            self.assertEqual((row["peak_kv_bytes"], row["fits"]), (tokens // 8 * 16 * 128 * 2 * 2, False))

    def test_what_a_rank_cannot_have_is_said_and_not_a_deadlock(self):
        job = {"platform": json.loads(run("platforms", "cpu-1g").stdout), "num_ranks": 3, "num_heads": 4096, "num_kv_heads": 4096,
               "head_dim": 1024, "kv_type": "f32", "context": 64 << 20, "batch": 1, "num_slots": 64, "strategy": "tree",
               "ping_pong_bytes": []}
        done = subprocess.run([pathlib.Path(PROGRAM).with_name("pando-simulator")], input=json.dumps(job), capture_output=True,
                              text=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertRegex(done.stderr, r"\Asimulating the KV cache of [\d.]+ TiB is not possible here[^\n]*\n\Z")

    def test_large_messages_in_an_allreduce(self):
        row = self.rows_of("--platform", "cpu-10g", "--ranks", "8", "--batch", "64", "--contexts", "4K", "--strategies",
                           "allreduce")[0]
        self.assertGreater(row["merge_us"], row["bytes_per_rank"] / 1.25e9 * 1e6)


class GrowthTest(WithSimulatorTest):
    def times(self, strategy, last_ranks):
        """Microseconds by rank count, with 4096 tokens on every rank."""
        ranks = [2**i for i in range(1, last_ranks.bit_length())]
        return {count: self.rows_of("--platform", "dgx-h100", "--ranks", str(count), "--contexts", str(4096 * count),
                                    "--strategies", strategy)[0]["step_us"] for count in ranks}

    @staticmethod
    def r_squared(pairs):
        xs, ys = zip(*pairs, strict=True)
        mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
        covariance = sum((x - mean_x) * (y - mean_y) for x, y in pairs)
        return covariance**2 / (sum((x - mean_x)**2 for x in xs) * sum((y - mean_y)**2 for y in ys))

    def test_tree_grows_by_a_constant_for_each_doubling(self):
        times = self.times("tree", 512)
        self.assertGreaterEqual(self.r_squared([(math.log2(ranks), us) for ranks, us in times.items()]), 0.98)

    def test_ring_grows_with_the_ranks(self):
        times = {ranks: us for ranks, us in self.times("ring", 64).items() if ranks > 8}  # beyond a node, at its speed
        self.assertGreaterEqual(self.r_squared(list(times.items())), 0.999)
        self.assertAlmostEqual(times[64] / times[16], 63 / 15, delta=0.2)


class CountTest(WithSimulatorTest):
    """Messages and bytes are those of a real run, exactly."""

    SHAPE = ("--kv-type", "f16", "--contexts", "5000", "--batch", "3")

    def real(self, ranks, strategies, *args, mpi=False, before=()):
        line = [PROGRAM, "bench", "decode", "--heads", "8", "--kv-heads", "2", "--head-dim", "64", *self.SHAPE, "--threads", "1",
                "-r", "1", "--strategies", ",".join(strategies), "-o", "json", *args]
        if before:
            line = [*before, *line]
        elif mpi:
            line = [sys.executable, "-B", MPIRUN[0], "--launcher", MPIRUN[1], "-n", str(ranks), *line]
        else:
            line += ["--ranks", str(ranks)]
        result = subprocess.run(line, capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def test_across_hosts(self):
        """Two ranks on each of three hosts, so that two-level has nodes to tell apart."""
        hosts = [sys.executable, "-B", str(pathlib.Path(MPIRUN[0]).parents[1] / "hosts" / "run"), "--hosts", "3", "--"]
        if len(MPIRUN) < 2 or subprocess.run([*hosts, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("no MPI, or no network namespaces")
        platform = {**json.loads(run("platforms", "cpu-10g").stdout), "ranks_per_node": 2}
        strategies = PLANNED + COLLECTIVE
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "pairs.json"
            file.write_text(json.dumps(platform), encoding="utf-8")
            simulated = self.rows_of("--platform", str(file), "--shape", "8/2x64", *self.SHAPE, "--nodes", "3", "--strategies",
                                     ",".join(strategies))
        real = self.real(6, strategies, before=[*hosts, "mpirun", "-n", "6", "-N", "2"])
        self.assert_same_counts(simulated, real)

    def assert_counted_as_simulated(self, ranks, strategies, mpi=False):
        simulated = self.rows_of("--platform", "dgx-h100", "--shape", "8/2x64", *self.SHAPE, "--ranks", str(ranks), "--strategies",
                                 ",".join(["tree", *strategies]))
        # What the planner chooses there it need not choose here.
        chosen = simulated[0]["schedule"]
        real = self.real(ranks, ["tree"], "--schedule", chosen, mpi=mpi) if mpi or chosen not in COLLECTIVE else []
        real += self.real(ranks, strategies, mpi=mpi)
        simulated = simulated[len(simulated) - len(real):]
        self.assert_same_counts(simulated, real)

    def assert_same_counts(self, simulated, real):
        for row, expected in zip(simulated, real, strict=True):
            with self.subTest(ranks=row["ranks"], strategy=row["strategy"]):
                for key in ["strategy", "schedule", *COUNTED]:
                    self.assertEqual(row[key], expected[key], key)

    def test_in_process(self):
        for ranks in (1, 2, 3, 5, 8):
            self.assert_counted_as_simulated(ranks, PLANNED)

    def test_under_mpirun(self):
        if len(MPIRUN) < 2:
            self.skipTest("this build has no MPI")
        for ranks in (4, 8):
            self.assert_counted_as_simulated(ranks, PLANNED + COLLECTIVE, mpi=True)


class EndBeforeItsTimeTest(WithSimulatorTest):
    # The first row is there at once, the second takes many seconds.
    ARGS = ["--platform", "dgx-h100", "--ranks", "2,512", "--strategies", "direct", "--jobs", "1"]

    def interrupt(self, *args):
        reader, writer = pty.openpty()
        with subprocess.Popen([PROGRAM, "simulate", *self.ARGS, *args], stdout=subprocess.PIPE, stderr=writer,
                              text=True) as process:
            shown = ""
            while "1 of 2 points: 512 ranks" not in shown:
                shown += os.read(reader, 4096).decode()
            children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="utf-8").split()
            process.send_signal(signal.SIGINT)
            output, _ = process.communicate(timeout=60)
        os.close(writer)
        shown += os.read(reader, 1 << 16).decode()
        os.close(reader)
        self.assertEqual(process.returncode, 130)
        self.assertRegex(shown, r"pando: interrupted: 1 of 2 points were simulated\r\n\Z")
        self.assertEqual(len(children), 1)
        self.assertFalse(pathlib.Path(f"/proc/{children[0]}").exists(), "nothing is left running")
        return output

    def test_ctrl_c_keeps_what_is_done(self):
        self.assertEqual(json.loads(self.interrupt("-o", "jsonl"))["ranks"], 2)
        self.assertEqual([row["ranks"] for row in json.loads(self.interrupt("-o", "json"))], [2])
        self.assertRegex(self.interrupt(), r"\| direct +\| direct")
        with tempfile.TemporaryDirectory() as folder:
            self.interrupt("-o", "csv", "--plot", f"{folder}/figure.svg")
            xml.etree.ElementTree.parse(f"{folder}/figure.svg")

    def test_a_point_that_takes_too_long(self):
        result = run("simulate", *self.ARGS, "-o", "csv", "--timeout", "2")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(len(result.stdout.splitlines()), 2)
        self.assertRegex(result.stderr, r"\Apando: 512 ranks, 64K tokens, direct: not done after 2 seconds[^\n]*--timeout\n\Z")


class FigureTest(WithSimulatorTest):
    def draw(self, *args):
        with tempfile.TemporaryDirectory() as folder:
            output = self.output_of(*args, "--plot", f"{folder}/figure.svg")
            tree = xml.etree.ElementTree.parse(f"{folder}/figure.svg")
        return output, " ".join(text for text in tree.getroot().itertext() if text.strip())

    def test_over_contexts_and_over_ranks(self):
        _, text = self.draw("--platform", "dgx-h100", "--nodes", "1,2", "--contexts", "4K..16K", "--strategies", "tree,ring")
        for words in ("One decode step on dgx-h100, simulated", "8 ranks on 1 node", "16 ranks on 2 nodes", "context (tokens)"):
            self.assertIn(words, text)
        _, text = self.draw("--platform", "cpu-10g", "--ranks", "2..8", "--strategies", "tree")
        self.assertIn("64K tokens", text)
        self.assertNotIn("context (tokens)", text)

    def test_map(self):
        output, text = self.draw("--map", "--platform", "cpu-10g", "--ranks", "2..8", "--batches", "1..4", "-o", "json")
        rows = json.loads(output)
        self.assertEqual([(row["ranks"], row["batch"]) for row in rows], [(r, b) for r in (2, 4, 8) for b in (1, 2, 4)])
        for row in rows:
            times = {name: row[f"{name}_us"] for name in ("butterfly", "two_level", "direct", "reduce_scatter", "allreduce")}
            best = min(times.values())
            self.assertLessEqual(times[row["winner"].replace("-", "_")], 1.011 * best)
            self.assertAlmostEqual(row["chosen_over_best"], times[row["chosen"].replace("-", "_")] / best, delta=1e-3)
            self.assertEqual(row["message_bytes"], row["batch"] * 16 * 130 * 4)
        self.assertIn("bytes of a rank's partial result", text)
        self.assertRegex(self.output_of("--map", "--platform", "cpu-10g", "--ranks", "2", "--batches", "1"),
                         re.compile(r"^The planner's choice is the fastest, or within 1 % of it, in \d of 1 cells", re.MULTILINE))


if __name__ == "__main__":
    PROGRAM, MPIRUN = sys.argv[1], [argument for argument in sys.argv[2:4] if not argument.startswith("-")]
    unittest.main(argv=sys.argv[:1] + sys.argv[2 + len(MPIRUN):])

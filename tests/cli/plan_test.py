#!/usr/bin/env python3
"""Runs `pando plan` and `pando platforms` as a user does.

    plan_test.py PROGRAM MODEL PLATFORMS MPIRUN_PY [MPIEXEC] [unittest options]

MODEL is a small GGUF file, PLATFORMS the folder of the shipped platforms with their schema.
"""

import copy
import csv
import io
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import jsonschema

PROGRAM = MODEL = MPIRUN = MPIEXEC = ""
PLATFORMS = pathlib.Path()

# What the schema and the program must both refuse: the path of a value, and what it is set to; None takes it away.
WRONG = [
    (["name"], None), (["name"], ""), (["name"], 3), (["nodes"], 4), (["max_nodes"], 0), (["max_nodes"], 1.5),
    (["max_nodes"], "8"), (["max_nodes"], 65537), (["ranks_per_node"], 1025), (["ports_per_node"], -1),
    (["device"], []), (["device"], None), (["device", "memory_bytes"], 0), (["device", "memory_bytes"], "80GB"),
    (["device", "flops_per_second"], None), (["device", "flops_per_second"], 0.5),
    (["device", "launch_overhead_seconds"], -1e-6), (["device", "source"], None), (["device", "flops"], 1e15),
    (["within_node", "bytes_per_second"], 0), (["within_node", "bytes_per_second"], 1e19),
    (["between_nodes"], None), (["between_nodes", "latency_seconds"], None),
    (["between_nodes", "receive_overhead_seconds"], True),
]


def changed(platform, path, value):
    platform = copy.deepcopy(platform)
    group = platform
    for key in path[:-1]:
        group = group[key]
    if value is None:
        del group[path[-1]]
    else:
        group[path[-1]] = value
    return platform


class PlanTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_pando(self, *args):
        return subprocess.run([PROGRAM, *args], capture_output=True, text=True, timeout=120, check=False)

    def output_of(self, *args):
        run = self.run_pando(*args)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        return run.stdout

    def complaint_about(self, *args):
        run = self.run_pando(*args)
        self.assertEqual((run.returncode, run.stdout), (2, ""), run.stderr)
        self.assertRegex(run.stderr, r"\Apando: [^\n]+\n\Z")
        return run.stderr

    def plan(self, *args):
        return json.loads(self.output_of("plan", *args, "-o", "json"))

    def platform_file(self, contents):
        path = self.folder / "mine.json"
        path.write_text(contents if isinstance(contents, str) else json.dumps(contents), encoding="utf-8")
        return str(path)

    def test_text(self):
        text = self.output_of("plan", "--model", "llama-3.1-8b", "-c", "1M", "--platform", "dgx-h100", "--ranks", "1,2,8,16,64")
        for fact in (r"^model +llama-3\.1-8b: 32 layers, 4096 wide, 32 heads and 8 KV heads of 128; weights 15\.0 GiB",
                     r"^context +1M tokens, keys and values in f16; the model was trained for 128K$",
                     r"^KV cache +256\.0 GiB in f32, 128\.0 GiB in f16, 128\.0 GiB in bf16, 68\.0 GiB in q8_0, on all ranks",
                     r"^platform +dgx-h100: ", r"^\| +1 \| +1 \| +64 \| no ", r"^\| +64 \| +8 \| +64 \| yes ",
                     r"^It fits on \d+ ranks or more\.$",
                     r"^Take \d+ ranks on \d nodes?, with --slots 64 and the schedule \S+: [\d.]+ ms per token, "
                     r"\d+ % of it .*\.$", r"^Predicted, not measured"):
            self.assertRegex(text, re.compile(fact, re.MULTILINE))
        self.assertLessEqual(max(len(line) for line in text.splitlines() if line.startswith("|")), 100)

    def test_a_sweep_finds_the_fewest_ranks_and_a_recommendation(self):
        rows = self.plan("-m", "llama-3.1-70b", "-c", "128K", "--platform", "mi300x")
        advice = {row["ranks"]: row["advice"] for row in rows}
        self.assertEqual([row["fits"] for row in rows], ["yes" if row["weights_bytes"] + row["kv_bytes"] + row["states_bytes"] +
                                                         row["activations_bytes"] <= 192e9 * 0.9 else "no" for row in rows])
        fewest = [ranks for ranks, text in advice.items() if "fewest" in text]
        self.assertEqual(fewest, [min(row["ranks"] for row in rows if row["fits"] == "yes")])
        self.assertEqual(sum("recommended" in text for text in advice.values()), 1)
        fastest = min((row for row in rows if row["fits"] == "yes"), key=lambda row: row["ms_per_token"])
        self.assertIn("fastest", fastest["advice"])
        for row in rows:
            parts = row["weights_ms"] + row["kv_ms"] + row["merge_ms"] + row["gather_ms"]
            self.assertAlmostEqual(parts, row["ms_per_token"], delta=0.003)

    def test_hand_computed(self):
        # One rank with 100 GB/s and nothing else: 1.236e9 weights in f16 less norms, and 32 KiB of KV for a token.
        mine = json.loads(self.output_of("platforms", "cpu-1g"))
        mine["device"].update(memory_bytes_per_second=100e9, launch_overhead_seconds=0)
        rows = self.plan("-m", "llama-3.2-1b", "-c", "64K", "--platform", self.platform_file(mine), "--ranks", "1")
        self.assertAlmostEqual(rows[0]["weights_ms"], 1.23574e9 * 2 / 100e9 * 1e3, delta=0.05)
        self.assertAlmostEqual(rows[0]["kv_ms"], 65536 * 32768 / 100e9 * 1e3, delta=0.001)
        self.assertEqual(rows[0]["gather_ms"], 0)
        self.assertEqual(rows[0]["kv_bytes"], 65536 * 32768)

    def test_formats_agree(self):
        args = ("-m", "smollm2-135m", "-c", "8K", "--platform", "cpu-10g", "--ranks", "1,4")
        rows = self.plan(*args)
        lines = self.output_of("plan", *args, "-o", "jsonl").splitlines()
        self.assertEqual([json.loads(line) for line in lines], rows)
        table = list(csv.DictReader(io.StringIO(self.output_of("plan", *args, "-o", "csv"))))
        self.assertEqual([int(row["ranks"]) for row in table], [1, 4])
        self.assertEqual([float(row["ms_per_token"]) for row in table], [row["ms_per_token"] for row in rows])
        self.assertEqual(self.plan(*args), rows)  # the same again, to the last digit

    def test_types_batch_and_schedule(self):
        def one(*args):
            return self.plan("-m", "llama-3.1-8b", "-c", "32K", "--platform", "dgx-h100", "--ranks", "8", *args)[0]
        f16 = one()
        self.assertAlmostEqual(one("--weight-type", "q8_0")["weights_bytes"] / f16["weights_bytes"], 34 / 64, places=2)
        self.assertAlmostEqual(one("--kv-type", "f32")["kv_bytes"] / f16["kv_bytes"], 2, places=1)
        self.assertAlmostEqual(one("--batch", "4")["kv_bytes"] / f16["kv_bytes"], 4, places=1)
        self.assertEqual(one("--schedule", "butterfly")["schedule"], "butterfly")
        self.assertLessEqual(f16["merge_ms"], one("--schedule", "butterfly")["merge_ms"])

    def test_groups_and_prompts(self):
        args = ("-m", "llama-3.1-8b", "-c", "128K", "--weight-type", "q4_0", "--platform", "cpu-10g", "--ranks", "8,32")
        chosen = self.plan(*args)
        forced = self.plan(*args, "--groups", "2")
        self.assertEqual([row["groups"] for row in forced], [2, 2])
        self.assertEqual([row["prompt_groups"] for row in forced], [2, 2])
        for row, other in zip(chosen, forced, strict=True):
            self.assertLessEqual(row["ms_per_token"], other["ms_per_token"])
            self.assertLessEqual(row["prompt_s"], other["prompt_s"])
            self.assertLess(row["ms_per_token"], row["one_group_ms"])
            self.assertLess(row["prompt_s"], row["prompt_one_group_s"])
            self.assertLess(row["prompt_s"], row["prompt_sequential_s"])
            self.assertAlmostEqual(row["prompt_tokens_per_s"], 131072 / row["prompt_s"], delta=0.5)
            parts = sum(row[f"prompt_{part}_s"] for part in ("weights", "kv", "merge", "gather"))
            self.assertAlmostEqual(parts, row["prompt_s"], delta=0.003)
        self.assertEqual(self.plan(*args, "--prompt", "1K")[0]["prompt_tokens"], 1024)
        text = self.output_of("plan", *args)
        self.assertRegex(text, r"(?m)^Decode in 8 groups of 4; one group by rows takes [\d.]+ ms\.$")
        self.assertRegex(text, r"(?m)^Read a prompt of 128K tokens in a group for each rank, with all weights: the first token comes "
                         r"after \d+ s, at [\d.]+ tokens/s; one group by rows takes \d+ s\.\nIf no message travelled")

    def test_what_does_not_fit_is_an_answer(self):
        text = self.output_of("plan", "-m", "llama-3.1-405b", "-c", "128K", "--platform", "rtx-4090")
        self.assertRegex(text, r"It does not fit: a rank of 2 needs [\d.]+ GiB and has 20\.1 GiB")
        self.assertNotIn("Take 2", text)

    def test_this_machine_and_a_file(self):
        text = self.output_of("plan", "-m", MODEL, "-c", "256", "--ranks", "1,2")
        self.assertRegex(text, r"machines +those at hand, measured now: [\d.]+ GiB of memory available, read at [\d.]+ GB/s")
        self.assertIn("It fits on one rank.", text)
        rows = self.plan("-m", MODEL, "-c", "256")
        self.assertEqual(rows[0]["ranks"], 1)

    def test_mpirun_is_measured(self):
        if not MPIEXEC:
            self.skipTest("built without MPI")
        run = subprocess.run([sys.executable, MPIRUN, "--launcher", MPIEXEC, "-n", "2", PROGRAM, "plan", "-m", MODEL, "-c", "256",
                              "-o", "json"],
                             capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        rows = json.loads(run.stdout)
        self.assertEqual([row["ranks"] for row in rows], [1, 2])
        self.assertGreater(rows[1]["gather_ms"], 0)

    def test_bad_input(self):
        for args, complaint in (
                ([], "needs a model"),
                (["-m", "llama-9"], "unknown model 'llama-9'.*smollm2-135m, or the path of a .gguf file"),
                (["-m", "none.gguf"], "none.gguf"),
                (["-m", MODEL, "--weight-type", "q4_k"], "a file says it itself"),
                (["-m", "llama-3.1-8b", "--weight-type", "q9"], "--weight-type.*q9"),
                (["-m", "llama-3.1-8b", "-c", "many"], "-c"),
                (["-m", "llama-3.1-8b", "-c", "0"], "-c"),
                (["-m", "llama-3.1-8b", "--kv-type", "f8"], "--kv-type.*f8"),
                (["-m", "llama-3.1-8b", "--batch", "0"], "--batch"),
                (["-m", "llama-3.1-8b", "--groups", "0"], "--groups"),
                (["-m", "llama-3.1-8b", "-c", "4K", "--prompt", "5K"], "--prompt.*5K.*1 to 4096"),
                (["-m", "llama-3.1-8b", "--schedule", "ring"], "--schedule.*butterfly"),
                (["-m", "llama-3.1-8b", "-o", "xml"], "-o"),
                (["-m", "llama-3.1-8b", "--platform", "dgx-h200"], "unknown platform 'dgx-h200'.*dgx-h100"),
                (["-m", "llama-3.1-8b", "--platform", "./none.json"], "none.json"),
                (["-m", "llama-3.1-8b", "--platform", "rtx-4090", "--ranks", "3"], "--ranks.*3.*2"),
                (["-m", "llama-3.1-8b", "--platform", "cpu-1g", "--ranks", "1,2000"], "2000.*1024"),
                (["-m", "llama-3.1-8b", "--ranks", "0"], "--ranks")):
            self.assertRegex(self.complaint_about("plan", *args), complaint)

    def test_platforms(self):
        rows = json.loads(self.output_of("platforms", "-o", "json"))
        names = [row["platform"] for row in rows]
        self.assertEqual(sorted(names), sorted(path.stem for path in PLATFORMS.glob("*.json") if "schema" not in path.name))
        for name in names:
            text = self.output_of("platforms", name)
            self.assertEqual(text, (PLATFORMS / f"{name}.json").read_text(encoding="utf-8"))
            self.assertEqual(self.plan("-m", "smollm2-135m", "--platform", name, "--ranks", "1"),
                             self.plan("-m", "smollm2-135m", "--platform", self.platform_file(text), "--ranks", "1"))
        self.assertIn("unknown platform 'x'", self.complaint_about("platforms", "x"))

    def test_schema(self):
        schema = json.loads((PLATFORMS / "platform.schema.json").read_text(encoding="utf-8"))
        jsonschema.Draft7Validator.check_schema(schema)
        validator = jsonschema.Draft7Validator(schema)
        for path in PLATFORMS.glob("*.json"):
            if "schema" in path.name:
                continue
            platform = json.loads(path.read_text(encoding="utf-8"))
            self.assertEqual([error.message for error in validator.iter_errors(platform)], [], path)
            self.assertEqual(platform["name"], path.stem)

    def test_schema_and_program_refuse_the_same(self):
        validator = jsonschema.Draft7Validator(json.loads((PLATFORMS / "platform.schema.json").read_text(encoding="utf-8")))
        valid = json.loads((PLATFORMS / "dgx-h100.json").read_text(encoding="utf-8"))
        for path, value in WRONG:
            wrong = changed(valid, path, value)
            self.assertFalse(validator.is_valid(wrong), (path, value))
            complaint = self.complaint_about("plan", "-m", "smollm2-135m", "--platform", self.platform_file(wrong))
            self.assertIn(f'"{".".join(path)}"', complaint)
            self.assertIn("mine.json", complaint)
        for text in ("", "[]", "{", '{"name": "\\ud800"}', "null"):
            self.assertIn("mine.json", self.complaint_about("plan", "-m", "smollm2-135m", "--platform",
                                                            self.platform_file(text)))


if __name__ == "__main__":
    PROGRAM, MODEL, MPIRUN = sys.argv[1], sys.argv[2], sys.argv[4]
    PLATFORMS = pathlib.Path(sys.argv[3])
    MPIEXEC = sys.argv[5] if len(sys.argv) > 5 and not sys.argv[5].startswith("-") else ""
    unittest.main(argv=sys.argv[:1] + sys.argv[(6 if MPIEXEC else 5):])

#!/usr/bin/env python3
"""Runs the pando program as a user does.

    cli_program_test.py PROGRAM [unittest options]
"""

import csv
import io
import json
import os
import pathlib
import pty
import re
import subprocess
import sys
import tempfile
import unittest

PROGRAM = ""

# Small enough to be over in a moment; the figures mean nothing, their form is what is tested.
SMALL_BENCH = ["bench", "attention", "--contexts", "192", "--heads", "4", "--kv-heads", "2", "--head-dim", "64",
               "--threads", "1,2", "--repeats", "3"]
BENCH_KEYS = ["kv_type", "context", "threads", "batch", "median_us", "spread_us", "kv_gb_per_s", "read_gb_per_s",
              "percent_of_read", "straight_pass_us"]
PREFILL_KEYS = ["kv_type", "context", "threads", "batch", "median_us", "spread_us", "gflop_per_s", "fma_gflop_per_s",
                "percent_of_fma"]


def run(*args, **kwargs):
    return subprocess.run([PROGRAM, *args], stdout=kwargs.pop("stdout", subprocess.PIPE), stderr=subprocess.PIPE,
                          text=True, timeout=120, check=False, **kwargs)


class ProgramTest(unittest.TestCase):
    def output_of(self, *args):
        result = run(*args)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr, "", "nothing goes to stderr in a pipe")
        return result.stdout

    def complaint_about(self, *args):
        """Bad input: exit code 2, nothing on stdout, one line on stderr."""
        result = run(*args)
        self.assertEqual(result.returncode, 2, f"{args}: {result.stdout}{result.stderr}")
        self.assertEqual(result.stdout, "", args)
        self.assertRegex(result.stderr, r"\Apando: [^\n]+\n\Z", args)
        return result.stderr


def without_model(cache_folder):
    """The environment of a user who has no model but in `cache_folder`."""
    env = {name: value for name, value in os.environ.items() if name not in ("PANDO_MODEL", "XDG_CACHE_HOME")}
    return env | {"PANDO_CACHE_DIR": cache_folder}


class HelpTest(ProgramTest):
    def test_the_program_alone_shows_how_to_go_on(self):
        text = self.output_of()
        self.assertLessEqual(len(text.splitlines()), 20)
        for words in ("Usage: pando COMMAND", "pando generate", "pando help"):
            self.assertIn(words, text)
        self.assertEqual(self.output_of("bench"), self.output_of("bench", "--help"))

    def test_the_help_command_is_the_help_option(self):
        for path in ([], ["generate"], ["bench"], ["bench", "decode"]):
            self.assertEqual(self.output_of("help", *path), self.output_of(*path, "--help"))

    def test_short_names_of_several_letters_are_in_the_help(self):
        page = self.output_of("chat", "--help")
        for names in ("-sys,--system-prompt", "-s,--seed", "-ctk,--cache-type-k", "-ngl,--n-gpu-layers"):
            self.assertIn(f"  {names}", page)

    def test_version(self):
        self.assertRegex(self.output_of("--version"), r"\Apando \d+\.\d+\.\d+\n\Z")

    def test_every_command_of_the_help_has_help_with_examples(self):
        pages = self.help_pages([])
        self.assertIn(("info",), pages)
        self.assertIn(("topology",), pages)
        self.assertIn(("bench", "attention"), pages)
        for path, page in pages.items():
            self.assertRegex(page, rf"Usage: {' '.join(['pando', *path])} \[OPTIONS\]", path)
            self.assertIn("\nExamples:\n  pando ", page, path)
            self.assertEqual([line for line in page.splitlines() if len(line) > 120], [], path)

    def test_examples_of_the_help_name_real_commands_and_options(self):
        for path, page in self.help_pages([]).items():
            for example in re.findall(r"^  pando (.+)$", page, re.MULTILINE):
                args = re.split(r"  +| \| ", example)[0].split()
                names = re.match(r"(\w+( |$))*", " ".join(args)).group().strip()
                with self.subTest(path=path, example=example):
                    self.assertIn(f"Usage: pando {names} [OPTIONS]", self.output_of(*args, "--help"))

    def help_pages(self, path):
        """The help of the command at `path` and of all commands that it lists."""
        page = self.output_of(*path, "--help")
        pages = {tuple(path): page}
        commands = re.search(r"^Commands:\n((?:  .*\n)+)", page, re.MULTILINE)
        for name in re.findall(r"^  (\w+) ", commands.group(1), re.MULTILINE) if commands else []:
            pages.update(self.help_pages([*path, name]))
        return pages


class InfoTest(ProgramTest):
    def test_text(self):
        text = self.output_of("info")
        for fact in (r"^CPU +\S", r"^SIMD targets +.*\(in use: \w+\)$", r"^usable here +\d+ threads?, \d+ cores?",
                     r"^memory +[\d.]+ GiB", r"^NUMA node \d", r"^1 thread +reads \d+\.\d GB/s"):
            self.assertRegex(text, re.compile(fact, re.MULTILINE))

    def test_json(self):
        info = json.loads(self.output_of("info", "-o", "json"))
        self.assertIn(info["simd_target_in_use"], info["simd_targets"])
        self.assertEqual(info["limits"][0]["threads"], 1)
        self.assertEqual(info["limits"][-1]["threads"], info["threads"])
        for limit in info["limits"]:
            self.assertGreater(limit["read_gb_per_s"], 0)
            self.assertGreater(limit["fma_gflops"], 0)
        self.assertGreaterEqual(info["memory_bytes"], info["available_memory_bytes"])

    def test_only_usable_threads_are_counted(self):
        one = {min(os.sched_getaffinity(0))}
        result = run("info", "-o", "json", preexec_fn=lambda: os.sched_setaffinity(0, one))
        self.assertEqual(json.loads(result.stdout)["threads"], 1)


class BenchAttentionTest(ProgramTest):
    def assert_rows(self, rows):
        self.assertEqual([(row["kv_type"], int(row["threads"])) for row in rows], [("f16", 1), ("f16", 2)])
        for row in rows:
            self.assertEqual(list(row)[:len(BENCH_KEYS)], BENCH_KEYS)
            self.assertEqual(int(row["context"]), 192)
            self.assertEqual(int(row["batch"]), 1)
            for key in ("median_us", "kv_gb_per_s", "read_gb_per_s", "percent_of_read", "straight_pass_us"):
                self.assertGreater(float(row[key]), 0, key)

    def test_json(self):
        rows = json.loads(self.output_of(*SMALL_BENCH, "-o", "json"))
        self.assert_rows(rows)
        for key, value in rows[0].items():
            self.assertIsInstance(value, str if key == "kv_type" else (int, float), key)

    def test_json_lines(self):
        self.assert_rows([json.loads(line) for line in self.output_of(*SMALL_BENCH, "-o", "jsonl").splitlines()])

    def test_csv(self):
        self.assert_rows(list(csv.DictReader(io.StringIO(self.output_of(*SMALL_BENCH, "-o", "csv")))))

    def test_markdown_is_the_default(self):
        lines = self.output_of(*SMALL_BENCH).splitlines()
        self.assertEqual(len({len(line) for line in lines}), 1, "all lines are equally long")
        cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
        self.assert_rows([dict(zip(cells[0], row)) for row in cells[2:]])

    def test_every_kv_type_in_one_run(self):
        rows = json.loads(self.output_of(*SMALL_BENCH, "--threads", "1", "--kv-type", "f32,f16,bf16,q8_0", "-o", "json"))
        self.assertEqual([row["kv_type"] for row in rows], ["f32", "f16", "bf16", "q8_0"])

    def test_prefill_has_its_own_columns(self):
        rows = json.loads(self.output_of("bench", "attention", "--prefill", "100", "--heads", "4", "--kv-heads", "2",
                                         "--head-dim", "64", "--threads", "1", "--repeats", "3", "-o", "json"))
        self.assertEqual(list(rows[0]), PREFILL_KEYS)
        self.assertGreater(rows[0]["percent_of_fma"], 0)

    def test_products_beside_the_limits_of_the_machine(self):
        rows = json.loads(self.output_of("bench", "matmul", "--type", "q4_1,f16", "--rows", "48", "--columns", "64",
                                         "--tokens", "1,9", "--threads", "1", "--repeats", "2", "-o", "json"))
        self.assertEqual([(row["type"], row["tokens"]) for row in rows],
                         [("q4_1", 1), ("q4_1", 9), ("f16", 1), ("f16", 9)])
        for row in rows:
            for key in ("median_us", "weights_gb_per_s", "read_gb_per_s", "gmac_per_s", "fma_gmac_per_s"):
                self.assertGreater(row[key], 0, key)
        self.assertIn("blocks of 256", self.complaint_about("bench", "matmul", "--type", "q6_k", "--columns", "64"))

    def test_prefill_and_contexts_exclude_each_other(self):
        complaint = self.complaint_about(*SMALL_BENCH, "--prefill", "100")
        self.assertIn("--prefill", complaint)
        self.assertIn("--contexts", complaint)

    def test_rows_before_a_failure_are_printed(self):
        result = run(*SMALL_BENCH, "--threads", "1", "--contexts", "192,1000000M", "-o", "jsonl")
        self.assertEqual(result.returncode, 2)
        self.assertEqual(json.loads(result.stdout)["context"], 192)
        self.assertRegex(result.stderr, r"\Apando: [^\n]+\n\Z")


class TopologyTest(ProgramTest):
    def test_text(self):
        text = self.output_of("topology", "--ranks", "3")
        self.assertRegex(text, r"\A3 ranks \(inproc\): 1 node, 1 socket, 1 process\n")
        for fact in (r"^    rank 1  slots 21 to 41 +\.{21}#{21}\.{22}$", r"^\| in the same process \| +\d+\.\d\d \|",
                     r"^\| direct +\| +\d+\.\d \| +\d+\.\d \| (chosen|candidate) +\|$",
                     r"^The planner chooses [a-z-]+\.$"):
            self.assertRegex(text, re.compile(fact, re.MULTILINE))

    def test_one_rank_is_the_default(self):
        self.assertRegex(self.output_of("topology"), r"\A1 rank ")

    def test_json(self):
        topology = json.loads(self.output_of("topology", "--ranks", "4", "--slots", "128", "--weights", "1,0,2.5,1",
                                             "--heads", "8", "--head-dim", "64", "--batch", "3", "-o", "json"))
        self.assertEqual([topology[key] for key in ("transport", "slots", "heads", "head_dim", "batch")],
                         ["inproc", 128, 8, 64, 3])
        ranks = topology["ranks_in_tree_order"]
        self.assertEqual([rank["rank"] for rank in ranks], [0, 1, 2, 3])
        self.assertEqual(ranks[1]["slots_begin"], ranks[1]["slots_end"])
        self.assertGreater(ranks[2]["slots_end"] - ranks[2]["slots_begin"], 64)
        self.assertEqual(len(topology["links"]), 1)
        self.assertGreater(topology["links"][0]["latency_us"], 0)
        roles = {row["schedule"]: row["role"] for row in topology["schedules"]}
        self.assertEqual(roles[topology["chosen"]], "chosen")
        self.assertEqual(roles["paper"], "comparison")
        for row in topology["schedules"]:
            self.assertGreater(row["predicted_us"], 0)
            self.assertGreater(row["measured_us"], 0)

    def test_64_ranks(self):
        topology = json.loads(self.output_of("topology", "--ranks", "64", "-o", "json"))
        self.assertEqual([rank["slots_begin"] for rank in topology["ranks_in_tree_order"]], list(range(64)))

    def test_groups_of_a_model(self):
        for ranks in (1, 3):
            topology = json.loads(self.output_of("topology", "--ranks", str(ranks), "-m", "smollm2-135m", "-o", "json"))
            groups = topology["groups"]
            self.assertEqual(groups["context"], 8192)
            self.assertTrue(groups["fits"])
            for phase in ("decoding", "prompts"):
                of_ranks = [rank[f"{phase}_group"] for rank in topology["ranks_in_tree_order"]]
                self.assertEqual(sorted(set(of_ranks)), list(range(groups[phase])))
        text = self.output_of("topology", "--ranks", "2", "-m", "smollm2-135m", "--batch", "4")
        self.assertRegex(text, r"\nsmollm2-135m, 4 sequences with 8192 tokens:\n  decodes in .+\n  reads a prompt in .+\n\Z")

    def test_a_model_that_is_not_known_or_not_there(self):
        self.assertIn("unknown model 'gpt': it must be one of", self.complaint_about("topology", "-m", "gpt"))
        self.assertIn("nowhere.gguf", self.complaint_about("topology", "-m", "nowhere.gguf"))

    def test_more_ranks_than_slots_says_how_to_raise_the_slots(self):
        self.assertIn("use --slots 128", self.complaint_about("topology", "--ranks", "65"))

    def test_values_are_named(self):
        for option, *values in (
                ("--ranks", "0", "-1", "many", "1025"),
                ("--timeout", "0", "-1", "soon"),
                ("--slots", "0", "63", "x", "131072"),
                ("--weights", "1,2,3", "1,x", "1,", "-1,1", "0,0"),
                ("--heads", "0", "x"),
                ("--head-dim", "0"),
                ("--batch", "0", "65536"),
                ("-o", "yaml")):
            for value in values:
                with self.subTest(option=option, value=value):
                    complaint = self.complaint_about("topology", "--ranks", "2", option, value)
                    self.assertRegex(complaint, r"must|use", "says what is allowed")
                    self.assertRegex(complaint, rf"{option}|{value}|weights")

    def test_unknown_argument(self):
        self.assertIn("--bogus", self.complaint_about("topology", "--bogus"))


class BadInputTest(ProgramTest):
    def test_values_are_named(self):
        for option, *values in (
                ("--kv-type", "f8", "F16"),
                ("--heads", "7", "0", "many"),
                ("--kv-heads", "3", "0"),
                ("--head-dim", "0", "12", "-8"),
                ("--contexts", "0", "-1", "8Q", "1.5", "8K;rm", "1000000M", "99999999999999999999"),
                ("--threads", "0", "-1", "abc", "100000"),
                ("--batch", "0", "x"),
                ("--repeats", "0", "-3"),
                ("-o", "xml")):
            for value in values:
                with self.subTest(option=option, value=value):
                    complaint = self.complaint_about(*SMALL_BENCH, option, value)
                    self.assertRegex(complaint, rf"(?<![\w.-]){re.escape(value)}(?!\w)")
                    self.assertRegex(complaint, r"must|use", "says what is allowed")

    def test_empty_parts_of_lists_are_refused_with_the_option(self):
        for option in ("--kv-type", "--contexts", "--threads"):
            for value in ("", "1,,2", "1,", ","):
                with self.subTest(option=option, value=value):
                    self.assertIn(option, self.complaint_about(*SMALL_BENCH, option, value))

    def test_info_output(self):
        self.assertIn('"yaml": it must be text or json', self.complaint_about("info", "-o", "yaml"))

    def test_unknown_arguments_are_named(self):
        for args in (["--bogus"], ["info", "--bogus"], ["bench", "attention", "--bogus", "3"], ["info", "bogus"],
                     ["bogus"], ["bench", "bogus"]):
            with self.subTest(args=args):
                complaint = self.complaint_about(*args)
                self.assertIn("bogus", complaint)
                self.assertIn("--help", complaint)

    def test_mistyped_names_get_a_suggestion(self):
        for args, meant in {("genrate", "-p", "x"): "generate", ("bench", "atention"): "attention", ("help", "plna"): "plan",
                            ("help", "bench", "modle"): "model", ("generate", "--promt", "x"): "--prompt",
                            ("generate", "--tmep=0", "-p", "x"): "--temp", ("chat", "-ctkk", "f16"): "-ctk"}.items():
            with self.subTest(args=args):
                self.assertIn(f"did you mean {meant}?", self.complaint_about(*args))

    def test_flags_of_the_other_demo_are_refused(self):
        for args in (["--ranks", "1,2"], ["--document", "x"], ["--question", "x"]):
            self.assertIn("-m", self.complaint_about("demo", *args))
        self.assertIn("--context", self.complaint_about("demo", "-m", "x.gguf", "--context", "8K"))

    def test_values_glued_to_short_options_are_refused(self):
        for glued, apart in {"-n16": "-n 16", "-t2": "-t 2", "-n=16": "-n 16", "-mmodel.gguf": "-m model.gguf"}.items():
            with self.subTest(glued):
                complaint = self.complaint_about("generate", glued, "-p", "x")
                self.assertIn(glued, complaint)
                self.assertIn(apart, complaint)

    def test_without_a_model_it_says_where_one_could_come_from(self):
        with tempfile.TemporaryDirectory() as folder:
            for args in (["generate", "-p", "x"], ["tokenize", "-p", "x"], ["inspect"], ["bench", "model"]):
                with self.subTest(args):
                    result = run(*args, env=without_model(folder))
                    self.assertEqual((result.returncode, result.stdout), (2, ""))
                    self.assertRegex(result.stderr, r"\Apando: no model is given: [^\n]+\n\Z")
                    for way in ("-m", "$PANDO_MODEL", "scripts/fetch-model", folder):
                        self.assertIn(way, result.stderr)

    def test_the_model_comes_from_the_environment_or_is_the_fetched_one(self):
        fetch_model = (pathlib.Path(__file__).resolve().parents[2] / "scripts/fetch-model").read_text(encoding="utf-8")
        name = re.search(r'^MODEL = "(.+)"$', fetch_model, re.MULTILINE).group(1)
        with tempfile.TemporaryDirectory() as folder:
            fetched = pathlib.Path(folder, name)
            fetched.write_bytes(b"no model")
            cache = pathlib.Path(folder, ".cache/pando", name)
            cache.parent.mkdir(parents=True)
            cache.write_bytes(b"no model")
            for variables, path in (({}, fetched), ({"PANDO_MODEL": "/nowhere/x.gguf"}, "/nowhere/x.gguf"),
                                    ({"PANDO_CACHE_DIR": "", "HOME": folder}, cache),
                                    ({"PANDO_CACHE_DIR": "", "XDG_CACHE_HOME": f"{folder}/.cache"}, cache)):
                for args in (["tokenize", "-p", "x"], ["bench", "model"]):
                    with self.subTest(variables=variables, args=args):
                        result = run(*args, env=without_model(folder) | variables)
                        self.assertEqual(result.returncode, 2)
                        self.assertRegex(result.stderr, rf"\Apando: the model is {path} \([^\n]+\)\npando: [^\n]+\n\Z")

    def test_missing_value(self):
        self.assertIn("--heads needs a value", self.complaint_about("bench", "attention", "--heads"))

    def test_control_characters_do_not_break_the_line(self):
        self.assertIn("8?K", self.complaint_about(*SMALL_BENCH, "--contexts", "8\nK"))


class TerminalTest(ProgramTest):
    def test_output_that_cannot_be_written_is_a_failure(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            result = run("info", stdout=full)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"\Apando: [^\n]+\n\Z")

    def test_progress_shows_on_a_terminal_and_is_taken_away(self):
        reader, writer = pty.openpty()
        subprocess.run([PROGRAM, "info"], stdout=subprocess.DEVNULL, stderr=writer, timeout=120, check=True)
        os.close(writer)
        shown = os.read(reader, 4096).decode()
        os.close(reader)
        self.assertIn("measuring", shown)
        self.assertTrue(shown.endswith("\r\033[K"), repr(shown))


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()

#!/usr/bin/env python3
"""Runs `pando inspect` as a user does.

    inspect_test.py PROGRAM [unittest options]
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "model"))
import gguf_files  # noqa: E402
import real_model  # noqa: E402

PROGRAM = ""
MODEL = real_model.path()


class InspectTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def file(self, name, contents):
        path = self.folder / name
        path.write_bytes(contents if isinstance(contents, bytes) else contents.bytes())
        return str(path)

    def run_inspect(self, *args, **kwargs):
        return subprocess.run([PROGRAM, "inspect", *args], capture_output=True, text=True, timeout=60, check=False, **kwargs)

    def output_of(self, *args):
        run = self.run_inspect(*args)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        return run.stdout

    def complaint_about(self, *args, **kwargs):
        run = self.run_inspect(*args, **kwargs)
        self.assertEqual((run.returncode, run.stdout), (2, ""), run.stderr)
        self.assertRegex(run.stderr, r"\Apando: [^\n]+\n\Z")
        return run.stderr

    def test_text(self):
        path = self.file("m.gguf", gguf_files.model())
        text = self.output_of(path)
        for fact in (r"^file +\S+m\.gguf, [\d.]+ KiB, GGUF version 3$", r"^model +Tiny, architecture llama$",
                     r"^shape +1 layers, 32 wide, 4 heads, 2 KV heads, head dim 8, feed-forward 64$",
                     r"^tokenizer +gpt2 \(smollm\), 3 tokens, 1 merges$", r"^special tokens +bos 0 <s>, eos 2 \\x1b\[2J$",
                     r"^\| Q4_0 +\| +7 \| +7264 \| +\d\.\d\d \| yes ", r"^Keys and values of 128 tokens",
                     r"^\| +8 \| f16 "):
            self.assertRegex(text, re.compile(fact, re.MULTILINE))
        self.assertEqual(self.output_of("-m", path), text)

    def test_json_with_everything(self):
        path = self.file("m.gguf", gguf_files.model())
        report = json.loads(self.output_of(path, "-c", "1k", "--ranks", "1,3", "--kv-type", "f32,q8_0", "--tensors",
                                           "--metadata", "-o", "json"))
        self.assertEqual(report["context"], 1024)
        self.assertEqual([(row["ranks"], row["kv_type"]) for row in report["memory"]],
                         [(1, "f32"), (1, "q8_0"), (3, "f32"), (3, "q8_0")])
        self.assertEqual(report["tensor_count"], len(report["tensors"]))
        self.assertIn({"key": "llama.block_count", "type": "uint32", "size": 1, "values": ["1"]}, report["metadata"])

    def test_a_window_bounds_the_memory(self):
        path = self.file("w.gguf", gguf_files.model().add("llama.attention.sliding_window", 64))
        bytes_of = [json.loads(self.output_of(path, "-c", context, "-o", "json"))["memory"][0]["kv_bytes_per_rank"]
                    for context in ("128", "100000")]
        self.assertEqual(bytes_of[0], bytes_of[1])

    def test_a_vocabulary_is_enough(self):
        text = self.output_of(self.file("v.gguf", gguf_files.vocabulary()))
        self.assertIn("no tensors", text)
        self.assertIn("3 tokens", text)

    def test_a_split_model_is_opened_by_its_first_file(self):
        first = self.file("m-00001-of-00002.gguf", gguf_files.part(0, 2, "a", 2))
        second = self.file("m-00002-of-00002.gguf", gguf_files.part(1, 2, "b", 2))
        self.assertIn("2 files", self.output_of(first))
        self.assertIn("m-00001-of-00002.gguf", self.complaint_about(second))
        pathlib.Path(second).unlink()
        self.assertIn("m-00002-of-00002.gguf", self.complaint_about(first))

    def test_bad_files_are_one_sentence(self):
        model = gguf_files.model().bytes()
        for name, contents, words in (
                ("empty", b"", ["empty"]),
                ("text", b"Dear reader", ["not a GGUF file", "Dear"]),
                ("v1", gguf_files.File(version=1), ["version 1"]),
                ("big", gguf_files.File(version=3 << 24), ["big-endian"]),
                ("short", model[:-100], ["100 are missing"]),
                ("header", model[:90], ["17 keys", "missing"]),
                ("twice", gguf_files.File().add("a", 1).add("a", 1), ["'a' twice"]),
                ("\x1b[2J", b"Dear reader", ["not a GGUF file"])):
            with self.subTest(name):
                complaint = self.complaint_about(self.file(name, contents))
                for word in words:
                    self.assertIn(word, complaint)
                self.assertNotIn("\x1b", complaint)
        self.assertIn("No such file", self.complaint_about(str(self.folder / "absent.gguf")))
        self.assertIn("not a regular file", self.complaint_about(str(self.folder)))

    def test_bad_options_are_named(self):
        path = self.file("m.gguf", gguf_files.model())
        for option, *values in (("-c", "0", "x", "-1"), ("--ranks", "0", "1,,2", "65"), ("--kv-type", "f8", ""), ("-o", "csv")):
            for value in values:
                with self.subTest(option=option, value=value):
                    self.assertRegex(self.complaint_about(path, option, value), r"must|use")
        self.assertIn("no model", self.complaint_about(env=real_model.WITHOUT_DEFAULT))

    @unittest.skipUnless(MODEL, real_model.NONE)
    def test_a_real_model(self):
        report = json.loads(self.output_of(MODEL, "-o", "json"))
        self.assertEqual(report["shape"]["layers"], 30)
        self.assertEqual(report["shape"]["head_dim"], 64)
        self.assertEqual(report["parameters"], 134515008)
        self.assertEqual({one["type"]: one["tensors"] for one in report["weights"]}, {"Q4_1": 210, "Q8_0": 1, "F32": 61})
        self.assertEqual(report["memory"][0]["kv_bytes_per_rank"], 8192 * 30 * 3 * 64 * 2 * 2)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()

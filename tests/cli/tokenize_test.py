#!/usr/bin/env python3
"""Runs `pando tokenize` and `pando detokenize` as a user does.

    tokenize_test.py PROGRAM [unittest options]
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "model"))
import gguf_files  # noqa: E402
import real_model  # noqa: E402

PROGRAM = ""
MODEL = real_model.path()


def run(*args, stdin=b"", **kwargs):
    return subprocess.run([PROGRAM, *args], input=stdin, capture_output=True, timeout=120, check=False, **kwargs)


class TokenizeTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.model = self.file("vocabulary.gguf", self.vocabulary().bytes())

    @staticmethod
    def vocabulary():
        """No tensors: the 256 bytes, "he", a control token."""
        printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
        others = iter(range(0x100, 0x200))
        alphabet = [chr(byte) if byte in printable else chr(next(others)) for byte in range(256)]
        writer = gguf_files.File()
        writer.add("general.architecture", "llama")
        writer.add("tokenizer.ggml.model", "gpt2")
        writer.add("tokenizer.ggml.pre", "gpt-2")
        writer.add("tokenizer.ggml.tokens", [*alphabet, "he", "<|end|>"])
        writer.add("tokenizer.ggml.token_type", [1] * 257 + [3])
        writer.add("tokenizer.ggml.merges", ["h e"])
        writer.add("tokenizer.ggml.eos_token_id", 257)
        return writer

    def file(self, name, contents):
        path = self.folder / name
        path.write_bytes(contents)
        return str(path)

    def output_of(self, *args, stdin=b""):
        result = run(*args, stdin=stdin)
        self.assertEqual((result.returncode, result.stderr), (0, b""), args)
        return result.stdout

    def test_a_long_text_does_not_take_for_ever(self):
        """10 MB in a few seconds, half of it one word: what grew with the square of that would not come to an end."""
        text = b"he said hello there; " * 250_000 + b"he" * 2_500_000
        ids = self.output_of("tokenize", "-m", self.model, stdin=text)
        self.assertEqual(self.output_of("detokenize", "-m", self.model, stdin=ids), text)

    def complaint_about(self, *args, stdin=b"", **kwargs):
        result = run(*args, stdin=stdin, **kwargs)
        self.assertEqual((result.returncode, result.stdout), (2, b""), result.stderr)
        self.assertRegex(result.stderr, rb"\Apando: [^\n]+\n\Z")
        return result.stderr.decode()

    def test_formats(self):
        self.assertEqual(self.output_of("tokenize", "-m", self.model, "-p", "hey<|end|>"), b"256 121 257\n")
        self.assertEqual(self.output_of("tokenize", "-m", self.model, "-p", "hey\n", "-o", "pieces"),
                         b'    256  "he"\n    121  "y"\n     10  "\\n"\n')
        self.assertEqual(json.loads(self.output_of("tokenize", "-m", self.model, "-p", "hey", "-o", "json")), [256, 121])

    def test_no_special(self):
        self.assertEqual(len(self.output_of("tokenize", "-m", self.model, "-p", "<|end|>", "--no-special").split()), 7)
        self.assertEqual(self.output_of("detokenize", "-m", self.model, "-p", "256 257"), b"he<|end|>")
        self.assertEqual(self.output_of("detokenize", "-m", self.model, "-p", "256 257", "--no-special"), b"he")

    def test_nothing_has_no_tokens(self):
        self.assertEqual(self.output_of("tokenize", "-m", self.model, "-p", ""), b"\n")
        self.assertEqual(self.output_of("tokenize", "-m", self.model, "-o", "json"), b"[]\n")
        self.assertEqual(self.output_of("detokenize", "-m", self.model), b"")

    def test_bytes_come_back(self):
        data = bytes(range(256)) * 3 + "naïve 你好 👍\n".encode() + b"he<|end|>"
        path = self.file("text", data)
        for output in "ids", "json":
            tokens = self.output_of("tokenize", "-m", self.model, "-f", path, "--keep-bytes", "-o", output)
            self.assertEqual(self.output_of("detokenize", "-m", self.model, stdin=tokens), data)
        self.assertEqual(self.output_of("tokenize", "-m", self.model, stdin=b"\xff"), b"239 191 189\n")

    def test_bad_input(self):
        for command in ("tokenize", "detokenize"):
            self.assertIn("no model", self.complaint_about(command, "-p", "1", env=real_model.WITHOUT_DEFAULT))
        self.assertIn("missing.gguf", self.complaint_about("tokenize", "-m", "missing.gguf", "-p", "x"))
        self.assertIn("missing.txt", self.complaint_about("tokenize", "-m", self.model, "-f", "missing.txt"))
        self.assertIn("ids, pieces or json", self.complaint_about("tokenize", "-m", self.model, "-p", "x", "-o", "xml"))
        self.assertIn("both", self.complaint_about("tokenize", "-m", self.model, "-p", "x", "-f", "y"))
        self.assertIn("0 to 257", self.complaint_about("detokenize", "-m", self.model, "-p", "1 258"))
        self.assertIn("token 1", self.complaint_about("detokenize", "-m", self.model, "-p", "1 one"))

    def test_a_file_without_a_vocabulary(self):
        writer = gguf_files.File()
        writer.add("general.architecture", "llama")
        path = self.file("none.gguf", writer.bytes())
        self.assertIn("has no vocabulary", self.complaint_about("tokenize", "-m", path, "-p", "x"))

    def test_an_unknown_pre_tokenizer(self):
        path = self.file("odd.gguf", self.vocabulary().bytes().replace(b"gpt-2", b"odd-2"))
        complaint = self.complaint_about("tokenize", "-m", path, "-p", "x")
        self.assertIn('"odd-2"', complaint)
        self.assertIn("smollm, llama-bpe, gpt-2, qwen2, default", complaint)

    @unittest.skipUnless(MODEL, "the default model is not there")
    def test_the_default_model(self):
        self.assertEqual(self.output_of("tokenize", "-m", MODEL, "-p", "Hello, world"), b"19556 28 905\n")
        text = pathlib.Path(__file__).read_bytes()
        tokens = self.output_of("tokenize", "-m", MODEL, stdin=text)
        self.assertEqual(self.output_of("detokenize", "-m", MODEL, stdin=tokens), text)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()

#!/usr/bin/env python3
"""Tokens of the corpus: for each pre-tokenizer with a tiny vocabulary, and for the real model's, the same as llama.cpp's.

    tokens_test.py PROGRAM
"""

import json
import pathlib
import subprocess
import sys
import unittest

import goldens

sys.path.insert(0, str(goldens.ROOT / "tests/model"))
import real_model  # noqa: E402

PROGRAM = ""
MODEL = real_model.path()
MODES = {"plain": ["--no-special"], "special": []}


def tokenize(model, file, *options):
    command = [PROGRAM, "tokenize", "-m", model, "-f", file, "-o", "json", *options]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if run.returncode != 0:
        raise AssertionError(f"pando tokenize ended with {run.returncode}: {run.stderr}")
    return json.loads(run.stdout)


def detokenize(model, tokens):
    command = [PROGRAM, "detokenize", "-m", model]
    return subprocess.run(command, input=" ".join(map(str, tokens)).encode(), capture_output=True, timeout=60, check=True).stdout


class TokensTest(unittest.TestCase):
    def assert_tokens(self, model, golden):
        for mode, options in MODES.items():
            for file in goldens.corpus_files():
                with self.subTest(pathlib.Path(model).stem, mode=mode, file=file.name):
                    self.assertIsNone(goldens.difference(tokenize(model, file, *options), golden[mode][file.name]))

    def test_every_pre_tokenizer_splits_as_llama_cpps_does(self):
        vocabularies = sorted(goldens.MODELS.glob("vocab-*.gguf"))
        self.assertEqual(len(vocabularies), 7)
        golden = goldens.load("tiny_tokens.json")
        for vocabulary in vocabularies:
            self.assert_tokens(vocabulary, golden[vocabulary.stem])

    @unittest.skipUnless(MODEL, real_model.NONE)
    def test_the_real_model_has_the_tokens_of_llama_cpp(self):
        self.assert_tokens(MODEL, goldens.load("tokens.json"))

    def test_a_vocabulary_of_bytes_gives_every_byte_back(self):
        for file in goldens.corpus_files():
            with self.subTest(file.name):
                model = goldens.MODELS / "vocab-smollm.gguf"
                tokens = tokenize(model, file, "--no-special", "--keep-bytes")
                self.assertEqual(detokenize(model, tokens), file.read_bytes())


def main():
    global PROGRAM  # pylint: disable=global-statement
    PROGRAM = sys.argv.pop(1)
    unittest.main()


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""The default model with its weights as float32, and keys and values too: nothing is rounded, neither here nor by llama.cpp.

    exact_test.py PROGRAM FLOAT_TWIN

Then 32 greedy tokens are llama.cpp's, prompts taken as they come ("undecided") included, and so is the perplexity: what
differs with the weights as they are (real_model_test.py), rounding did.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import goldens

sys.path.insert(0, str(goldens.ROOT / "tests/model"))
import real_model  # noqa: E402

PROGRAM = FLOAT_TWIN = ""
MODEL = real_model.path()


# Logits are within 2e-5 of exact ones where nothing is rounded (README.md): a token's log-likelihood within twice that.
PERPLEXITY_RATIO = 4e-5


@unittest.skipUnless(MODEL, real_model.NONE)
class ExactTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.twin = pathlib.Path(cls.folder.name, "twin.gguf")
        subprocess.run([FLOAT_TWIN, MODEL, cls.twin], check=True, timeout=120)

    def run_twin(self, command, *arguments):
        run = subprocess.run([PROGRAM, command, "-m", self.twin, "--kv-type", "f32", *arguments], capture_output=True,
                             text=True, timeout=300, check=True)
        return json.loads(run.stdout)

    def test_greedy_text_is_llama_cpps_on_every_prompt(self):
        for kind in goldens.PROMPT_KINDS:
            for prompt, golden in zip(goldens.prompts(kind), goldens.load("exact_greedy.json")[kind], strict=True):
                with self.subTest(kind=kind, prompt=prompt):
                    result = self.run_twin("generate", "-p", prompt, "-n", str(goldens.GREEDY_TOKENS), "--temp", "0",
                                           "--ignore-eos", "--json")
                    self.assertEqual(result["tokens"], golden["tokens"])

    def test_perplexity_is_llama_cpps(self):
        golden = goldens.load("exact_perplexity.json")
        window = goldens.EXACT_PERPLEXITY_WINDOW
        result = self.run_twin("perplexity", "-f", goldens.CHRONICLE, "-c", str(window), "--stride", str(window - 1),
                               "--chunks", "1", "-o", "json")
        self.assertEqual(result["tokens_scored"], golden["tokens_scored"])
        self.assertLess(abs(result["perplexity"] / golden["perplexity"] - 1), PERPLEXITY_RATIO)


def main():
    global PROGRAM, FLOAT_TWIN  # pylint: disable=global-statement
    PROGRAM, FLOAT_TWIN = sys.argv.pop(1), sys.argv.pop(1)
    unittest.main()


if __name__ == "__main__":
    main()

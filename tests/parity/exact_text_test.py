#!/usr/bin/env python3
"""The default model with its weights as float32, and keys and values too: nothing is rounded, neither here nor by llama.cpp.

    exact_text_test.py PROGRAM FLOAT_TWIN

Then 32 greedy tokens are llama.cpp's, prompts taken as they come ("undecided") included: where text parts with the weights
as they are (real_model_test.py), rounding did it.
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


@unittest.skipUnless(MODEL, real_model.NONE)
class ExactTextTest(unittest.TestCase):
    def test_greedy_text_is_llama_cpps_on_every_prompt(self):
        with tempfile.TemporaryDirectory() as folder:
            twin = pathlib.Path(folder, "twin.gguf")
            subprocess.run([FLOAT_TWIN, MODEL, twin], check=True, timeout=120)
            for kind in goldens.PROMPT_KINDS:
                for prompt, golden in zip(goldens.prompts(kind), goldens.load("exact_greedy.json")[kind], strict=True):
                    with self.subTest(kind=kind, prompt=prompt):
                        run = subprocess.run([PROGRAM, "generate", "-m", twin, "-p", prompt, "-n", str(goldens.GREEDY_TOKENS),
                                              "--temp", "0", "--ignore-eos", "--kv-type", "f32", "--json"],
                                             capture_output=True, text=True, timeout=300, check=True)
                        self.assertEqual(json.loads(run.stdout)["tokens"], golden["tokens"])


def main():
    global PROGRAM, FLOAT_TWIN  # pylint: disable=global-statement
    PROGRAM, FLOAT_TWIN = sys.argv.pop(1), sys.argv.pop(1)
    unittest.main()


if __name__ == "__main__":
    main()

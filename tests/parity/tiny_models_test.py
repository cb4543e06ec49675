#!/usr/bin/env python3
"""Tiny models of every weight type and architecture: Pando's logits against those that llama.cpp gave for the same file.

    tiny_models_test.py PROGRAM

What is compared is the distance to the logits of the model's twin, which has the same weights as float32 and rounds no
activation. Weights in blocks meet activations of 8 bits in both programs, so both are some way off; how far is in the
golden file. Pando's distance may be MORE_NOISE times llama.cpp's. Float weights meet unrounded activations here, so
that only the order of float32 sums is left: for a model of two layers and logits of about 1, some 1e-6.

Types in blocks of 32 meet the same 8-bit activations in both programs, so that their logits are llama.cpp's own up to the
order of sums, except where that order moves a value over the border between two integers. K types meet blocks of 32
activations here, of 256 there.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import goldens

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "model"))
import gguf_files  # noqa: E402

PROGRAM = ""

# Noise is summed over 261 logits that share their input: twice as much is a long way out. A wrong
# constant in a type, a norm or a rotation moves logits by a tenth of their spread or more, five times what passes here.
MORE_NOISE = 2.0
FLOAT_RMS = 2e-5

SAME_ACTIVATIONS = ("llama-q8_0", "llama-q4_0", "llama-q4_1", "llama-q5_0", "llama-q5_1")
SAME_RMS = 1e-5

# What the files' own keys say.
ROPE_LINEAR = ("--rope-scaling", "linear", "--rope-scale", "4")
ROPE_YARN = ("--rope-scaling", "yarn", "--rope-scale", "4", "--yarn-orig-ctx", "32")


def logits_of(path, tokens, positions, *options):
    """{position: [logit of token 0, 1, ...]}"""
    command = [PROGRAM, "logits", "-m", path, "--tokens", ",".join(map(str, tokens)), "--positions",
               ",".join(map(str, positions)), "--top", "0", "-o", "json", *options]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if run.returncode != 0:
        raise AssertionError(f"pando logits ended with {run.returncode}: {run.stderr}")
    logits = {position: {} for position in positions}
    for row in json.loads(run.stdout):
        logits[row["position"]][row["token"]] = row["logit"]
    return {position: [values[token] for token in range(len(values))] for position, values in logits.items()}


class TinyModelsTest(unittest.TestCase):
    def setUp(self):
        self.golden = {name: entry for name, entry in goldens.load("tiny_logits.json").items()
                       if name not in ("made_by", "model", "settings")}

    def assert_close(self, name, logits, allowed=None):
        for position, expected in self.golden[name].items():
            has_blocks = expected["rms"] > 0.01
            limit = allowed or (MORE_NOISE * expected["rms"] if has_blocks else FLOAT_RMS)
            distance = goldens.rms(logits[int(position)], expected["exact"])
            self.assertLessEqual(distance, limit, f"{name}, position {position}: llama.cpp is {expected['rms']} away")

    def positions_of(self, name):
        return [int(position) for position in self.golden[name]]

    def test_every_file_has_a_golden_record(self):
        names = {path.stem for path in goldens.MODELS.glob("*.gguf") if not path.stem.startswith("vocab-")}
        self.assertEqual(names, set(self.golden))

    def test_logits_are_as_close_to_exact_ones_as_llama_cpps(self):
        for name in self.golden:
            with self.subTest(name):
                logits = logits_of(goldens.MODELS / f"{name}.gguf", goldens.TINY_TOKENS, self.positions_of(name),
                                   "--kv-type", "f32", "-t", "1")
                self.assert_close(name, logits)

    def test_logits_are_llama_cpps_where_activations_are(self):
        equal = 0
        for name in SAME_ACTIVATIONS:
            logits = logits_of(goldens.MODELS / f"{name}.gguf", goldens.TINY_TOKENS, self.positions_of(name), "--kv-type",
                               "f32", "-t", "1")
            near = [goldens.rms(logits[int(position)], expected["logits"]) < SAME_RMS
                    for position, expected in self.golden[name].items()]
            self.assertTrue(any(near), name)
            equal += sum(near)
        self.assertGreaterEqual(equal, 8)  # of 10: in the other two one activation was rounded to its other neighbour

    def test_a_rotation_by_flags_is_that_of_the_file(self):
        for name, flags in (("llama-rope-linear", ROPE_LINEAR), ("llama-rope-yarn", ROPE_YARN)):
            whole = goldens.MODELS / f"{name}.gguf"
            positions = self.positions_of(name)
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                plain = pathlib.Path(folder) / "plain.gguf"
                plain.write_bytes(gguf_files.without_keys(whole.read_bytes(), "llama.rope.scal"))
                expected = logits_of(whole, goldens.TINY_TOKENS, positions)
                self.assertEqual(logits_of(plain, goldens.TINY_TOKENS, positions, *flags), expected)
                self.assertNotEqual(logits_of(plain, goldens.TINY_TOKENS, positions), expected, "it matters")
                self.assertEqual(logits_of(whole, goldens.TINY_TOKENS, positions, "--rope-scaling", "none"),
                                 logits_of(plain, goldens.TINY_TOKENS, positions))

    def test_ranks_threads_and_pieces_change_no_bit(self):
        for name in ("llama-q4_1", "llama-q6_k", "llama-window", "qwen3"):
            path, positions = goldens.MODELS / f"{name}.gguf", self.positions_of(name)
            one = logits_of(path, goldens.TINY_TOKENS, positions, "-t", "1")
            for options in (("--ranks", "3", "-t", "2"), ("-b", "7"), ("--attention", "ring", "--ranks", "2")):
                with self.subTest(name, options=options):
                    self.assertEqual(logits_of(path, goldens.TINY_TOKENS, positions, *options), one)


def main():
    global PROGRAM  # pylint: disable=global-statement
    PROGRAM = sys.argv.pop(1)
    unittest.main()


if __name__ == "__main__":
    main()

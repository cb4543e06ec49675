"""The most memory that the real model takes: its file, the keys and values, and at most 150 MB, on any number of ranks of
one process.

    memory_test.py PANDO
"""

import json
import os
import pathlib
import subprocess
import sys
import unittest

import real_model

PANDO = sys.argv[1]
MODEL = real_model.path()
SKIPPED = 77
PROMPT = (pathlib.Path(__file__).resolve().parent / "prompt.txt").read_text()
ALLOWED_BYTES = 150_000_000


def peak(ranks, num_prompts):
    """(the most resident bytes of a run, the bytes of its keys and values, the tokens of its prompt)"""
    line = [PANDO, "generate", "-m", MODEL, "-f", "-", "-c", "8192", "-n", "2", "--temp", "0", "--ignore-eos", "--json",
            "--ranks", str(ranks), "--timeout", "300"]
    program = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    program.stdin.write((PROMPT * (int(num_prompts) + 1))[:int(len(PROMPT) * num_prompts)].encode())
    program.stdin.close()
    output = program.stdout.read()
    program.stdout.close()
    _, status, usage = os.wait4(program.pid, 0)
    if status != 0:
        raise AssertionError(f"it ended with {os.waitstatus_to_exitcode(status)}")
    found = json.loads(output)
    return usage.ru_maxrss * 1024, sum(rank["kv_bytes"] for rank in found["ranks"]), found["timings"]["prompt_n"]


class MemoryTest(unittest.TestCase):
    def expect_within(self, ranks, num_prompts, least_tokens):
        resident, kv_bytes, num_tokens = peak(ranks, num_prompts)
        over = resident - kv_bytes - os.path.getsize(MODEL)
        print(f"{ranks} ranks, {num_tokens} tokens: {resident / 1e6:.0f} MB, of which {kv_bytes / 1e6:.0f} MB are keys and "
              f"values, and {over / 1e6:.0f} MB neither these nor the file", file=sys.stderr)
        self.assertGreater(num_tokens, least_tokens)
        self.assertLess(over, ALLOWED_BYTES)

    def test_several_steps(self):
        """What ranks need besides keys and values, they need from the second step on."""
        for ranks in (1, 4, 16):
            self.expect_within(ranks, 2, 1100)
        self.expect_within(64, 0.28, 150)

    def test_a_full_context(self):
        self.expect_within(8, 14.5, 8000)


if __name__ == "__main__":
    if not MODEL:
        print(f"skipped: {real_model.NONE}")
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1], verbosity=2)

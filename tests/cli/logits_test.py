#!/usr/bin/env python3
"""Runs `pando logits` as a user does, on a tiny model.

    logits_test.py PROGRAM MODEL
"""

import json
import subprocess
import sys
import unittest

PROGRAM = ""
MODEL = ""


def run(*args, **kwargs):
    return subprocess.run([PROGRAM, "logits", "-m", MODEL, *args], capture_output=True, text=True, timeout=60, check=False,
                          **kwargs)


class LogitsTest(unittest.TestCase):
    def rows_of(self, *args, **kwargs):
        result = run(*args, "-o", "json", **kwargs)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return json.loads(result.stdout)

    def complaint_about(self, *args, **kwargs):
        """Bad input: exit code 2, nothing on stdout, one line on stderr."""
        result = run(*args, **kwargs)
        self.assertEqual((result.returncode, result.stdout), (2, ""), result.stderr)
        self.assertRegex(result.stderr, r"\Apando: [^\n]+\n\Z")
        return result.stderr

    def test_the_likeliest_tokens_come_first(self):
        rows = self.rows_of("--tokens", "7,8,9", "--top", "5")
        keys = ["position", "token", "logit", "probability", "piece", "logits_fingerprint"]
        self.assertEqual([list(row) for row in rows], [keys] * 5)
        self.assertEqual({row["position"] for row in rows}, {2})
        logits = [row["logit"] for row in rows]
        self.assertEqual(logits, sorted(logits, reverse=True))

    def test_all_tokens_on_request(self):
        everything = self.rows_of("--tokens", "7,8,9", "--top", "0")
        self.assertEqual(sorted(row["token"] for row in everything), list(range(261)))
        self.assertEqual(everything[:3], self.rows_of("--tokens", "7,8,9", "--top", "3"))

    def test_positions_in_any_order_and_steps_of_any_size(self):
        rows = self.rows_of("--tokens", "7,8,9,10,11", "--positions", "4,0,2,0", "--top", "1")
        self.assertEqual([row["position"] for row in rows], [0, 2, 4])
        self.assertEqual(len({row["logits_fingerprint"] for row in rows}), 3)
        for size in ("1", "2"):
            self.assertEqual(
                self.rows_of("--tokens", "7,8,9,10,11", "--positions", "0,2,4", "--top", "1", "-b", size, "--ranks", "2"), rows)

    def test_later_tokens_do_not_change_earlier_logits(self):
        short = self.rows_of("--tokens", "7,8", "--top", "3")
        self.assertEqual(self.rows_of("--tokens", "7,8,9,10", "--positions", "1", "--top", "3"), short)

    def test_a_text_is_its_tokens(self):
        self.assertEqual(self.rows_of("-p", "ab"), self.rows_of("--tokens", "97,98"))
        self.assertEqual(self.rows_of(input="ab"), self.rows_of("--tokens", "97,98"))

    def test_bad_input_is_one_sentence(self):
        self.assertIn("there is no token 261: the vocabulary has 261", self.complaint_about("--tokens", "1,261"))
        self.assertIn("--tokens", self.complaint_about("--tokens", "1,x"))
        self.assertIn("from 0 to 1", self.complaint_about("--tokens", "1,2", "--positions", "2"))
        self.assertIn("--tokens is given beside -p", self.complaint_about("--tokens", "1", "-p", "x"))
        self.assertIn("no tokens", self.complaint_about("-p", ""))
        self.assertIn("--top", self.complaint_about("--tokens", "1", "--top", "-1"))
        self.assertIn("-o", self.complaint_about("--tokens", "1", "-o", "xml"))


def main():
    global PROGRAM, MODEL  # pylint: disable=global-statement
    PROGRAM, MODEL = sys.argv.pop(1), sys.argv.pop(1)
    unittest.main()


if __name__ == "__main__":
    main()

"""The bits of one rank, on 1, 2, 3, 4 and 8 processes: for every KV type and strategy, with uneven ranks, before and after
slots move, and from a snapshot of another number of ranks.

    mpi_bits_test.py LAUNCHER SUITE        the suite of ../hosts, on this machine
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

import mpirun

LAUNCHER, SUITE = sys.argv[1:3]


def bits(num_ranks, *arguments):
    """{(type, state, strategy): fingerprint}; num_ranks 0: without mpirun."""
    line, environment = mpirun.command(LAUNCHER, num_ranks, [SUITE, "bits", *arguments])
    if num_ranks == 0:
        line = [SUITE, "bits", *arguments]
    printed = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=120, check=True).stdout
    lines = [words.split() for words in printed.splitlines() if words.startswith("bits ")]
    return {tuple(words[1:4]): words[4] for words in lines}


class BitsTest(unittest.TestCase):
    def test_are_those_of_one_rank(self):
        with tempfile.TemporaryDirectory() as folder:
            snapshot = str(pathlib.Path(folder, "of-0"))
            alone = bits(0, "--save", snapshot)
            by_type = {case[0]: fingerprint for case, fingerprint in alone.items()}
            self.assertEqual(len(set(by_type.values())), 4, "four KV types, each with bits of its own")
            for num_ranks in (1, 2, 3, 4, 8):
                before, snapshot = snapshot, str(pathlib.Path(folder, f"of-{num_ranks}"))
                found = bits(num_ranks, "--load", before, "--save", snapshot)
                self.assertGreater(len(found), len(alone))
                for case, fingerprint in found.items():
                    self.assertEqual(fingerprint, by_type[case[0]], f"{case} on {num_ranks} ranks")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

"""The real model as several processes, under mpirun or on hosts of their own: the tokens and the fingerprint of the logits
are those of real_model_golden.txt, which real_model_bits_test.cc holds against everything inside one process.

    ranks_test.py LAUNCHER PANDO            2 and 4 processes here
    ranks_test.py LAUNCHER PANDO --hosts    2 hosts (../hosts), with 1 and with 2 processes each
"""

import json
import pathlib
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "mpi"), str(HERE.parent / "hosts")]
import mpirun  # pylint: disable=wrong-import-position
import network  # pylint: disable=wrong-import-position
import real_model

LAUNCHER, PANDO = sys.argv[1:3]
MODEL = real_model.path()
SKIPPED = 77
TIMEOUT_S = 120


def golden():
    lines = dict(line.split(" ", 1) for line in (HERE / "real_model_golden.txt").read_text().splitlines())
    return lines["fingerprint"], [int(token) for token in lines["tokens"].split()]


def generate(*options):
    return [PANDO, "generate", "-m", MODEL, "-f", str(HERE / "prompt.txt"), "-n", "8", "--temp", "0", "-t", "1", "--json",
            *options]


def said(output):
    found = json.loads(output)
    return found["logits_fingerprint"], found["tokens"]


class ProcessesTest(unittest.TestCase):
    def test_alone(self):
        done = subprocess.run(generate(), capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
        self.assertEqual(said(done.stdout), golden())

    def test_processes(self):
        for num_ranks, attention, groups in ((2, "tree", 0), (4, "tree", 1), (4, "tree", 2), (3, "tree", 3),
                                             (4, "allreduce", 0), (2, "ring", 2)):
            with self.subTest(num_ranks=num_ranks, attention=attention, groups=groups):
                line, environment = mpirun.command(LAUNCHER, num_ranks,
                                                   generate("--attention", attention, "--groups", str(groups)))
                done = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(said(done.stdout), golden())
                self.assertEqual(len(json.loads(done.stdout)["ranks"]), num_ranks)


class HostsTest(unittest.TestCase):
    def test_two_hosts(self):
        with network.Network(num_hosts=2) as hosts:
            for ranks_per_host, attention, groups in ((1, "tree", 0), (2, "tree", 1), (2, "tree", 2), (2, "tree", 4),
                                                      (2, "two-level", 2), (2, "direct", 0)):
                with self.subTest(ranks_per_host=ranks_per_host, attention=attention, groups=groups):
                    line = [LAUNCHER, "-n", str(2 * ranks_per_host), "-N", str(ranks_per_host),
                            *generate("--attention", attention, "--groups", str(groups))]
                    sent_before = hosts.counters(1).bytes
                    self.assertEqual(said(hosts.run(line, timeout_s=TIMEOUT_S)), golden())
                    # Every layer's attention crosses the wire, and products of one group: the second host was not idle.
                    self.assertGreater(hosts.counters(1).bytes - sent_before, 1_000_000)


def main():
    if not MODEL:
        print(f"skipped: {real_model.NONE}")
        return SKIPPED
    case = ProcessesTest
    if sys.argv[3:] == ["--hosts"]:
        case = HostsTest
        try:
            network.check_available()
        except network.Unavailable as reason:
            print(f"skipped: {reason}")
            return SKIPPED
        if not mpirun.is_openmpi(LAUNCHER):
            print(f"skipped: {LAUNCHER} is not OpenMPI's, and others are started across hosts in other ways")
            return SKIPPED
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(case)
    return 0 if unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())

"""The generate examples, in C++ and C, print the same text on one rank, on ranks as threads and under mpirun.

    generate_examples_test.py GENERATE GENERATE_IN_C LAUNCHER

LAUNCHER may be empty: then nothing is run under mpirun.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "mpi"), str(TESTS / "model")]
import mpirun  # pylint: disable=wrong-import-position
import tiny_gguf  # pylint: disable=wrong-import-position

GENERATE = ""
GENERATE_IN_C = ""
LAUNCHER = ""


def run(line, environment=None):
    return subprocess.run(line, env=environment, capture_output=True, timeout=100, check=False)


class GenerateExamplesTest(unittest.TestCase):

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
        self.addCleanup(self.folder.cleanup)
        self.model = tiny_gguf.write(pathlib.Path(self.folder.name) / "tiny.gguf")

    def text(self, ended):
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertGreater(len(ended.stdout), 10)
        return ended.stdout

    def generate(self, *arguments):
        return run([GENERATE, str(self.model), "Once upon a time", *arguments])

    def test_same_text_on_threads(self):
        one = self.text(self.generate())
        for ranks in ["1", "2", "4"]:
            self.assertEqual(self.text(self.generate(ranks)), one, ranks)

    def test_same_text_in_c(self):
        one = self.text(self.generate())
        for arguments in [[], ["3"]]:
            self.assertEqual(self.text(run([GENERATE_IN_C, str(self.model), "Once upon a time", *arguments])), one)

    def test_same_text_under_mpirun(self):
        if not LAUNCHER or not shutil.which(LAUNCHER) or not mpirun.is_openmpi(LAUNCHER):
            self.skipTest("there is no OpenMPI")
        one = self.text(self.generate())
        for program, ranks in [(GENERATE, 1), (GENERATE, 2), (GENERATE_IN_C, 2)]:
            line, environment = mpirun.command(LAUNCHER, ranks, [program, str(self.model), "Once upon a time"])
            self.assertEqual(self.text(run(line, environment)), one, (program, ranks))

    def test_says_what_is_wrong(self):
        for ended in [self.generate("0"), self.generate("65"), run([GENERATE, "/no/such.gguf", "x"]), run([GENERATE]),
                      run([GENERATE_IN_C, "/no/such.gguf", "x"]), run([GENERATE_IN_C])]:
            self.assertEqual((ended.returncode, ended.stdout), (1, b""))
            self.assertRegex(ended.stderr, rb"\Agenerate(_in_c)?: .+\n\Z")


if __name__ == "__main__":
    GENERATE, GENERATE_IN_C, LAUNCHER = sys.argv[1:4]
    unittest.main(argv=sys.argv[:1], verbosity=2)

"""What `pando generate` says when it cannot: one sentence, 2 for bad input and 1 for a failure while running, no hang.

    generate_failures_test.py PANDO [LAUNCHER]        with the MPI launcher also: a rank that dies while generating
"""

import json
import os
import pathlib
import random
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "mpi"), str(HERE.parent / "model")]
import mpirun  # pylint: disable=wrong-import-position
import real_model  # pylint: disable=wrong-import-position
import tiny_gguf  # pylint: disable=wrong-import-position

PANDO = sys.argv[1]
LAUNCHER = sys.argv[2] if len(sys.argv) > 2 else None
TIMEOUT_S = 60
# How long a busy machine may take for what should be a moment.
PATIENCE_S = 30


def run(*arguments, **kwargs):
    kwargs.setdefault("stdin", subprocess.DEVNULL)
    kwargs.setdefault("stdout", subprocess.PIPE)
    return subprocess.run([PANDO, *map(str, arguments)], stderr=subprocess.PIPE, timeout=TIMEOUT_S, check=False, **kwargs)


class FailureTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.model = tiny_gguf.write(self.folder / "tiny.gguf")

    def expect_complaint(self, done, code, *words):
        error = done.stderr.decode()
        self.assertEqual(done.returncode, code, error)
        self.assertRegex(error, r"\Apando: [^\n]+\n\Z", "one sentence")
        for word in words:
            self.assertIn(word, error)

    def refused(self, *arguments, words, model=None, **kwargs):
        """Bad input, on one rank and on three: nothing on stdout."""
        for ranks in ("1", "3"):
            done = run("generate", "-m", model or self.model, "--ranks", ranks, *arguments, **kwargs)
            self.expect_complaint(done, 2, *words)
            self.assertEqual(done.stdout, b"")

    def generate(self, *arguments, **kwargs):
        done = run("generate", "-m", self.model, "--temp", "0", *arguments, **kwargs)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        return done.stdout


class ModelFileTest(FailureTest):
    def test_missing(self):
        self.refused("-p", "a", model=self.folder / "none.gguf", words=["none.gguf"])
        self.refused("-p", "a", model=self.folder, words=[str(self.folder)])
        self.expect_complaint(run("generate", "-p", "a", env=real_model.WITHOUT_DEFAULT), 2, "-m")

    def test_truncated_anywhere(self):
        whole = self.model.read_bytes()
        broken = self.folder / "broken.gguf"
        for size in [0, 1, 3, 4, 23, 24, 25, *range(100, len(whole), len(whole) // 12), len(whole) - 1]:
            broken.write_bytes(whole[:size])
            done = run("generate", "-m", broken, "-p", "a", "-n", "1")
            self.expect_complaint(done, 2, "broken.gguf")

    def test_damaged_anywhere(self):
        """A changed number may still be a model; what comes is text or one sentence, never a crash."""
        whole = self.model.read_bytes()
        broken = self.folder / "broken.gguf"
        numbers = random.Random(7)
        outcomes = set()
        for _ in range(60):
            data = bytearray(whole)
            # Mostly in the head, where everything is counts, offsets and names.
            place = numbers.randrange(numbers.choice([400, 8000, len(data)]))
            data[place] = numbers.choice([0, 0x7F, 0xFF, data[place] ^ 1 << numbers.randrange(8)])
            broken.write_bytes(data)
            done = run("generate", "-m", broken, "-p", "ab", "-n", "2", "--ranks", "2")
            outcomes.add(done.returncode)
            if done.returncode != 0:
                # Damaged weights may give logits that are not finite, which is known only when they are computed.
                if done.returncode == 1:
                    self.expect_complaint(done, 1, "not a finite number")
                else:
                    self.expect_complaint(done, 2)
        self.assertEqual(outcomes, {0, 1, 2})

    def test_of_another_kind(self):
        self.refused("-p", "a", model=tiny_gguf.write(self.folder / "x.gguf", **{"general.architecture": "rwkv6"}),
                     words=["'rwkv6'", "llama, qwen2, qwen3"])
        self.refused("-p", "a", model=tiny_gguf.write(self.folder / "y.gguf", **{"tokenizer.ggml.model": None}),
                     words=["y.gguf", "token"])
        text = self.folder / "text.txt"
        text.write_text("This is not a model.")
        self.refused("-p", "a", model=text, words=["text.txt"])


class TextTest(FailureTest):
    """The tiny model says bytes that are no text."""

    def test_weights_that_are_not_numbers(self):
        whole = self.model.read_bytes()
        for bad in (float("nan"), float("inf")):
            self.model.write_bytes(whole[:-64] + struct.pack("<f", bad) + whole[-60:])  # in the last layer
            for ranks in ("1", "2"):
                done = run("generate", "-m", self.model, "-p", "Hello", "-n", "4", "--ranks", ranks)
                self.expect_complaint(done, 1, "not a finite number", "weights")

    def test_what_is_printed_is_utf8(self):
        text = self.generate("-p", "a", "-n", "40", "--ignore-eos").decode("utf-8", "strict")
        self.assertIn("\ufffd", text)
        chat = run("chat", "-m", self.model, "--temp", "0", "-n", "40", "--chat-template", "chatml", stdin=None,
                   input=b"a\nb\n")
        self.assertEqual((chat.returncode, chat.stderr), (0, b""))
        self.assertIn("\ufffd", chat.stdout.decode("utf-8", "strict"))


class PromptTest(FailureTest):
    def test_longer_than_the_context(self):
        self.refused("-p", "a" * 20, "-c", "20", words=["20 tokens", "-c"])
        self.refused("-p", "a" * 300, words=["300 tokens", "256", "-c"])
        self.generate("-p", "a" * 300, "-c", "310", "-n", "10")

    def test_a_context_is_filled_and_no_more(self):
        done = json.loads(self.generate("-p", "a" * 19, "-c", "20", "-n", "10", "--ignore-eos", "--json"))
        self.assertEqual((done["stop_reason"], len(done["tokens"])), ("context", 2))

    def test_context_beyond_memory(self):
        # 256 bytes per token and rank group: half a terabyte.
        for options in (["-n", "2147480000"], ["-n", "-1"]):
            self.refused("-p", "a", "-c", "2147483648", *options, words=["KV cache", "available"])

    def test_empty(self):
        self.refused("-p", "", words=["prompt", "-p", "-f", "standard input"])
        self.refused(words=["prompt"])
        empty = self.folder / "empty.txt"
        empty.touch()
        self.refused("-f", empty, words=["prompt"])

    def test_file_that_cannot_be_read(self):
        self.refused("-f", self.folder / "none.txt", words=["none.txt"])
        self.refused("-f", self.folder, words=[str(self.folder), "folder"])

    def test_bytes_that_are_no_text(self):
        """They are taken as the character that stands for such bytes, and what comes out is text."""
        prompt = self.folder / "bytes.txt"
        prompt.write_bytes(b"ab\xff\xfe\xc3( \xf0\x9f")
        done = json.loads(self.generate("-f", prompt, "-n", "20", "--ignore-eos", "--json").decode("utf-8"))
        self.assertEqual(len(done["tokens"]), 20)


class OptionsTest(FailureTest):
    def test_numbers_that_are_none(self):
        for option, value in (("-n", "0"), ("-c", "-5"), ("-t", "x"), ("--temp", "-1"), ("--top-p", "2"),
                              ("--kv-type", "f8"), ("--attention", "best"), ("--rope-scaling", "some"), ("--slots", "3")):
            done = run("generate", "-m", self.model, "-p", "a", option, value)
            self.expect_complaint(done, 2)
        self.expect_complaint(run("generate", "-m", self.model, "-p", "a", "--rope-freq-base", "0.000001"), 2, "radians")
        self.expect_complaint(run("generate", "-m", self.model, "-p", "a", "--rope-scaling", "yarn"), 2, "--rope-scale")
        for option, value in (("-n", "-2"), ("--seed", "-5")):
            self.expect_complaint(run("generate", "-m", self.model, "-p", "a", option, value), 2, option, "or -1")

    def test_more_ranks_than_slots(self):
        done = run("generate", "-m", self.model, "-p", "a", "--ranks", "65")
        self.expect_complaint(done, 2, "65 ranks", "--slots")
        self.generate("-p", "a", "-n", "2", "--ranks", "9", "--slots", "16", "-t", "1")


class OutputTest(FailureTest):
    def test_full_disk(self):
        for options in ([], ["--json"]):
            with open("/dev/full", "wb") as full:
                done = run("generate", "-m", self.model, "-p", "a", "-n", "3", "--ignore-eos", "--ranks", "2", *options,
                           stdout=full)
            self.expect_complaint(done, 1, "No space left")


@unittest.skipUnless(LAUNCHER, "built without MPI")
class LostRankTest(FailureTest):
    NUM_RANKS = 3
    LOST = 1
    LOST_TIMEOUT_S = 8

    def start(self):
        """Ranks that generate for ever, each with a file for what it says and one for its exit code."""
        wrapper = ('rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}; "${@:2}" >"$1/text.$rank" 2>"$1/said.$rank" & '
                   'echo $! >"$1/process.$rank"; wait $!; echo $? >"$1/new.$rank"; mv "$1/new.$rank" "$1/code.$rank"')
        program = ["bash", "-c", wrapper, "wrapper", str(self.folder), PANDO, "generate", "-m", str(self.model), "-p", "a",
                   "-n", "-1", "-c", "1000000", "--ignore-eos", "-t", "1", "--timeout", str(self.LOST_TIMEOUT_S)]
        line, environment = mpirun.command(LAUNCHER, self.NUM_RANKS, program, recover=True)
        launcher = subprocess.Popen(line, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL, start_new_session=True)
        self.addCleanup(self.end, launcher)
        return launcher

    def end(self, launcher):
        for rank in range(self.NUM_RANKS):
            process = self.read(f"process.{rank}")
            if process:
                self.kill(int(process))
        try:
            launcher.wait(5)
        except subprocess.TimeoutExpired:
            launcher.kill()
            launcher.wait()

    @staticmethod
    def kill(process):
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def read(self, name):
        file = self.folder / name
        return file.read_text(errors="replace").strip() if file.exists() else ""

    def wait_until(self, condition):
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return True

    def test_killed_while_generating(self):
        if not mpirun.is_openmpi(LAUNCHER):
            self.skipTest("other launchers end all ranks when one is lost before they can report")
        self.start()
        self.assertTrue(self.wait_until(lambda: len(self.read("text.0")) > 50), self.read("said.0"))
        self.kill(int(self.read(f"process.{self.LOST}")))
        since = time.monotonic()
        survivors = [rank for rank in range(self.NUM_RANKS) if rank != self.LOST]
        self.assertTrue(self.wait_until(lambda: all(self.read(f"code.{rank}") for rank in survivors)), "not all ended")
        self.assertLess(time.monotonic() - since, self.LOST_TIMEOUT_S + PATIENCE_S)
        for rank in survivors:
            said = self.read(f"said.{rank}")
            self.assertEqual(self.read(f"code.{rank}"), "1", said)
            self.assertRegex(said, r"\Apando: [^\n]+\Z")
            self.assertTrue(re.search(rf"\brank {self.LOST}\b", said), said)


@unittest.skipUnless(LAUNCHER and mpirun.is_openmpi(LAUNCHER), "OpenMPI's launcher alone sends what is tested here")
class InterruptTest(FailureTest):
    def test_ctrl_c_ends_ranks_with_the_text_so_far(self):
        program = [PANDO, "generate", "-m", str(self.model), "-p", "a", "-n", "-1", "-c", "1000000", "--ignore-eos", "-t", "1",
                   "--temp", "0"]
        line, environment = mpirun.command(LAUNCHER, 3, program)
        launcher = subprocess.Popen(line, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, start_new_session=True, bufsize=0)
        text = launcher.stdout.read(40)
        launcher.send_signal(signal.SIGINT)
        rest, said = launcher.communicate(timeout=TIMEOUT_S)
        (text + rest).decode("utf-8", "strict")
        self.assertTrue(rest.endswith(b"\n"), "the line is ended")
        self.assertRegex("\n".join(re.findall(r"^pando: .*$", said.decode(), re.MULTILINE)),
                         r"\Apando: interrupted after \d+ tokens\Z")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)

"""pando generate and pando chat on the real model, as a person at a terminal or a program in a pipe meets them."""

import contextlib
import json
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "model"))
import real_model  # noqa: E402

PANDO = sys.argv.pop(1)
MODEL = real_model.path()
SENTENCE = re.compile(r"pando: [^\n]+\n")


def run(*arguments, stdin=""):
    return subprocess.run([PANDO, *arguments], input=stdin, capture_output=True, text=True, timeout=120, check=False)


class Terminal:
    """A program on a terminal of its own: what it prints there, and keys for it."""

    def __init__(self, *arguments):
        self.child, self.terminal = pty.fork()
        if self.child == 0:
            os.execv(PANDO, [PANDO, *arguments])
        self.screen = ""

    def wait_for(self, pattern, seconds=60):
        deadline = time.monotonic() + seconds
        while not re.search(pattern, self.screen):
            ready, _, _ = select.select([self.terminal], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise AssertionError(f"no {pattern!r} on the terminal, but {self.screen!r}")
            try:
                self.screen += os.read(self.terminal, 65536).decode("utf-8", "replace")
            except OSError as error:  # the program has ended
                raise AssertionError(f"ended without {pattern!r}: {self.screen!r}") from error
        return self.screen

    def press(self, keys):
        os.write(self.terminal, keys.encode())

    def exit_code(self, seconds=60):
        deadline = time.monotonic() + seconds
        while os.waitid(os.P_PID, self.child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            if time.monotonic() > deadline:
                os.kill(self.child, signal.SIGKILL)
                raise AssertionError(f"it has not ended, but shows {self.screen!r}")
            if select.select([self.terminal], [], [], 0.1)[0]:
                with contextlib.suppress(OSError):  # it ends just now
                    self.screen += os.read(self.terminal, 65536).decode("utf-8", "replace")
        _, status = os.waitpid(self.child, 0)
        return os.waitstatus_to_exitcode(status)


@unittest.skipUnless(MODEL, real_model.NONE)
class GenerateTest(unittest.TestCase):
    def test_text_goes_to_stdout_and_nothing_else(self):
        done = run("generate", "-m", MODEL, "-p", "The capital of France is", "-n", "6", "--temp", "0")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue(done.stdout.startswith(" Paris."), done.stdout)
        self.assertTrue(done.stdout.endswith("\n"))

    def test_half_a_character_is_never_printed(self):
        """An emoji has several tokens here, and -n cuts it."""
        prompt = "\U0001F600\U0001F680\U0001F600\U0001F680\U0001F600\U0001F680"
        cut = 0
        for count in ("1", "2", "3"):
            arguments = [PANDO, "generate", "-m", MODEL, "-p", prompt, "-n", count, "--temp", "0", "--ignore-eos"]
            text = subprocess.run(arguments, capture_output=True, timeout=120, check=True).stdout.decode("utf-8", "strict")
            self.assertEqual(text, json.loads(run(*arguments[1:], "--json").stdout)["text"] + "\n")
            cut += text.endswith("\ufffd\n")
        self.assertGreater(cut, 0, "no emoji was cut: the test needs another prompt")

    def test_json_is_the_same_for_any_ranks_threads_and_pieces(self):
        prompt = "Salt and lighthouses and the year 1811. " * 12
        seen = set()
        for extra in (["--ranks", "1", "-t", "2"], ["--ranks", "3", "-t", "1"], ["-b", "7"], ["--attention", "ring", "--ranks", "2"]):
            done = run("generate", "-m", MODEL, "-n", "8", "--seed", "3", "--json", *extra, stdin=prompt)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            report = json.loads(done.stdout)
            self.assertEqual(len(report["tokens"]), 8)
            self.assertEqual(report["stop_reason"], "length")
            seen.add((report["text"], tuple(report["tokens"]), report["logits_fingerprint"]))
        self.assertEqual(len(seen), 1, seen)

    def test_a_slow_pipe_is_waited_for(self):
        pando = subprocess.Popen([PANDO, "generate", "-m", MODEL, "-n", "2", "--ranks", "2", "--timeout", "1"],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(2.5)
        out, complaint = pando.communicate("Hello", timeout=60)
        self.assertEqual((pando.returncode, complaint), (0, ""))
        self.assertTrue(out)

    def test_the_spellings_of_llama_cpp(self):
        plain = run("generate", "-m", MODEL, "--chat", "--system", "Be brief.", "-p", "Hello", "-n", "8", "--seed", "3", "--temp", "0.9")
        self.assertEqual((plain.returncode, plain.stderr), (0, ""))
        done = run("generate", "--model", MODEL, "-cnv", "-sys", "Be brief.", "--prompt", "Hello", "--n-predict", "8", "-s", "3",
                   "--temperature", "0.9", "-st", "--no-display-prompt", "--ctx-size", "512", "--batch-size", "64", "--threads", "2")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, plain.stdout)
        gpu = run("generate", "-m", MODEL, "-p", "Hello", "-n", "2", "-ngl", "99")
        self.assertEqual(gpu.returncode, 0, gpu.stderr)
        self.assertRegex(gpu.stderr, r"\Apando: --n-gpu-layers has no effect: [^\n]+\n\Z")

    def test_a_value_that_looks_like_an_option_stays_a_value(self):
        texts = [json.loads(run("generate", "-m", MODEL, "-p", prompt, "-n", "1", "--json").stdout)["timings"]["prompt_n"]
                 for prompt in ("-st", "--single-turn")]
        self.assertNotEqual(texts[0], texts[1])

    def test_seeds_change_the_text_and_the_same_seed_does_not(self):
        texts = [run("generate", "-m", MODEL, "-p", "Once", "-n", "12", "--temp", "1.5", "--top-p", "1", "--seed", seed).stdout
                 for seed in ("1", "1", "2")]
        self.assertEqual(texts[0], texts[1])
        self.assertNotEqual(texts[0], texts[2])

    def test_context_is_a_limit(self):
        done = run("generate", "-m", MODEL, "-p", "one two three four five", "-c", "8", "-n", "-1", "--ignore-eos", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual(report["stop_reason"], "context")
        self.assertEqual(report["timings"]["prompt_n"] + len(report["tokens"]), 9)  # the last is picked, not computed

    def test_bad_input_is_one_sentence_and_exit_code_2(self):
        for wrong, words in {
            ("-p", "x", "-c", "1"): "raise -c",
            ("-p", ""): "prompt is empty",
            ("-p", "x", "-f", "y"): "both -p and -f",
            ("-f", "/nowhere/at/all"): "/nowhere/at/all",
            ("-p", "x", "-n", "0"): "-n",
            ("-p", "x", "--temp", "hot"): "--temp",
            ("-p", "x", "--attention", "star"): "--attention",
            ("-p", "x", "--kv-type", "q4"): "q4",
            ("-p", "x", "-ctv", "q4"): "-ctv",
            ("-p", "x", "--chat", "--chat-template", "none"): "chatml",
            ("-p", "x", "--ranks", "65"): "--slots",
            ("-p", "x", "-sys", "y"): "--chat",
            ("-p", "x", "--chat-template", "chatml"): "--chat",
            ("-p", "x", "-s", "y"): "--seed",
            ("-p", "x", "-n16"): "-n 16",
        }.items():
            with self.subTest(wrong):
                done = run("generate", "-m", MODEL, *wrong)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertRegex(done.stderr, SENTENCE)
                self.assertEqual(done.stderr.count("\n"), 1)
                self.assertIn(words, done.stderr)

    def test_a_terminal_gets_a_summary(self):
        terminal = Terminal("generate", "-m", MODEL, "-p", "Hello", "-n", "4")
        screen = terminal.wait_for(r"ms gather")
        self.assertRegex(screen, r"prompt 1 tokens, [\d.]+ tokens/s; generated 4 tokens, [\d.]+ tokens/s, "
                                 r"reading [\d.]+ GB/s of the machine's [\d.]+; 1 rank ")
        self.assertEqual(terminal.exit_code(), 0)

    def test_a_terminal_shows_how_far_the_prompt_is_read(self):
        terminal = Terminal("generate", "-m", MODEL, "-p", "Salt and lighthouses and the year 1811. " * 8, "-b", "8", "-n", "2")
        terminal.wait_for(r"reading \[#*\.+\] \d+ of \d\d+ tokens, \d+ tokens/s, \d+ s left")
        terminal.wait_for(r"(?s)\x1b\[K(?!reading).*ms gather")  # it is taken away again
        self.assertEqual(terminal.exit_code(), 0)

    def test_ctrl_c_ends_cleanly(self):
        terminal = Terminal("generate", "-m", MODEL, "-p", "Once upon a time", "-n", "-1", "--ignore-eos")
        terminal.wait_for(r"\w+ \w+")
        terminal.press("\x03")
        terminal.wait_for(r"ms gather")
        self.assertEqual(terminal.exit_code(), 130)


@unittest.skipUnless(MODEL, real_model.NONE)
class ChatTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.saved = os.path.join(self.folder.name, "trip.chat")

    def files(self, chat):
        """Those of a saved chat, with ID in the place of its id."""
        names = [re.sub(rf"^{re.escape(chat)}\.[0-9a-f]{{16}}\.", f"{chat}.ID.", name) for name in os.listdir(self.folder.name)]
        return sorted(name for name in names if name == chat or name.startswith(f"{chat}.ID."))

    def chat(self, turns, *arguments):
        done = run("chat", "-m", MODEL, "--temp", "0", "-n", "24", *arguments, stdin="".join(turn + "\n" for turn in turns))
        return done

    def test_a_saved_chat_goes_on_as_if_it_had_not_ended_on_any_ranks(self):
        whole = self.chat(["My name is Bob.", "What is my name?", "Are you sure?"])
        self.assertEqual((whole.returncode, whole.stderr), (0, ""))
        first = self.chat(["My name is Bob.", "What is my name?", f"/save {self.saved}"])
        self.assertEqual((first.returncode, first.stderr), (0, ""))
        self.assertEqual(self.files("trip.chat"), ["trip.chat", "trip.chat.ID.0-of-1"])
        for ranks in ("1", "3"):
            rest = self.chat(["Are you sure?", f"/save {self.saved}.{ranks}"], "--load", self.saved, "--ranks", ranks)
            self.assertEqual((rest.returncode, rest.stderr), (0, ""))
            self.assertEqual(first.stdout + rest.stdout, whole.stdout)
        again = self.chat([f"/load {self.saved}.3", "/save " + self.saved], "--ranks", "2")
        self.assertEqual(again.returncode, 0, again.stderr)
        left = ["trip.chat", "trip.chat.ID.0-of-2", "trip.chat.ID.1-of-2"]
        self.assertEqual(self.files("trip.chat"), left)  # no older set

    def test_a_first_turn_and_a_single_one(self):
        plain = self.chat(["My name is Bob."])
        for arguments, turns in ((["-p", "My name is Bob.", "-st"], ["not read"]), (["-p", "My name is Bob.", "-cnv"], []),
                                 (["-st"], ["My name is Bob.", "not read"])):
            done = self.chat(turns, *arguments)
            self.assertEqual((done.returncode, done.stderr, done.stdout), (0, "", plain.stdout), arguments)

    def test_clear_forgets(self):
        one = self.chat(["Say a word.", "/clear", "Say a word."])
        lines = one.stdout.strip("\n")
        half = len(lines) // 2
        self.assertEqual(lines[:half], lines[half + 1:])

    def test_what_cannot_be_done_is_said(self):
        for turn, words in {"/fly": "no command /fly", "/save": "needs the name", "/load": "needs the name",
                            "/load /nowhere/x": "/nowhere/x", "/save /nowhere/x": "/nowhere/x"}.items():
            with self.subTest(turn):
                done = self.chat([turn])
                self.assertNotEqual(done.returncode, 0)
                self.assertRegex(done.stderr, SENTENCE)
                self.assertIn(words, done.stderr)

    def test_a_broken_save_is_refused_and_the_chat_goes_on(self):
        self.assertEqual(self.chat(["Hello.", f"/save {self.saved}"]).returncode, 0)
        cache, = pathlib.Path(self.folder.name).glob("trip.chat.*.0-of-1")
        cache.write_bytes(cache.read_bytes()[:-100])
        terminal = Terminal("chat", "-m", MODEL, "--temp", "0", "-n", "4")
        terminal.wait_for("> ")
        terminal.press(f"/load {self.saved}\n")
        terminal.wait_for(r"pando: .*trip\.chat")
        terminal.screen = ""
        terminal.press("Hello.\n")
        terminal.wait_for(r"\w+.*\n> ")
        terminal.press("\x04")
        self.assertEqual(terminal.exit_code(), 0)

    def test_a_terminal_gets_a_summary_of_each_turn(self):
        terminal = Terminal("chat", "-m", MODEL, "--temp", "0", "-n", "4")
        terminal.wait_for("> ")
        for _ in range(2):
            terminal.screen = ""
            terminal.press("Hello.\n")
            terminal.wait_for(r"\[prompt \d+ tokens, [\d.]+ tokens/s; generated 4 tokens, [\d.]+ tokens/s\]\r\n> $")
        terminal.press("\x04")
        self.assertEqual(terminal.exit_code(), 0)

    def test_ctrl_c_stops_an_answer_and_not_the_chat(self):
        terminal = Terminal("chat", "-m", MODEL, "-n", "100000")
        terminal.wait_for("> ")
        terminal.press("Count from one to ten thousand, in words.\n")
        terminal.wait_for(r"words\.\r\n.*\w+ \w+")
        terminal.press("\x03")
        terminal.wait_for(r"\n> $")
        os.kill(terminal.child, signal.SIGINT)  # while it waits for a line
        self.assertEqual(terminal.exit_code(), 130)


if __name__ == "__main__":
    unittest.main()

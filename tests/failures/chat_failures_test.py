"""What `pando chat` says when a chat cannot be saved or loaded: one sentence, no partial file, no hang.

    chat_failures_test.py PANDO
"""

import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "model")]
import tiny_gguf  # pylint: disable=wrong-import-position

PANDO = sys.argv[1]
TIMEOUT_S = 60


@contextlib.contextmanager
def small_disk(folder, size):
    """A file system of so many bytes. SkipTest where the machine does not allow it."""
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True,
                          text=True, check=False)
    if done.returncode != 0:
        raise unittest.SkipTest(f"no tmpfs can be mounted: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


class ChatFailureTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.model = tiny_gguf.write(self.folder / "tiny.gguf")

    def chat(self, *lines, ranks=2, options=()):
        return subprocess.run([PANDO, "chat", "-m", str(self.model), "--chat-template", "chatml", "--temp", "0", "-n", "4",
                               "--ranks", str(ranks), "-t", "1", *map(str, options)],
                              input="".join(f"{line}\n" for line in lines), capture_output=True, text=True, errors="replace",
                              timeout=TIMEOUT_S, check=False)

    def expect_complaint(self, done, code, *words):
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertRegex(done.stderr, r"\Apando: [^\n]+\n\Z", "one sentence")
        for word in words:
            self.assertIn(word, done.stderr)

    def test_memory_is_taken_as_the_chat_grows(self):
        self.model = tiny_gguf.write(self.folder / "long.gguf", **{"llama.context_length": 2**31})
        done = self.chat("hello", options=["-n", "3"])
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.expect_complaint(self.chat("hello", options=["-c", "2147483648"]), 2, "KV cache", "(-c)")

    def test_an_answer_without_a_limit_fills_the_context(self):
        done = self.chat("hello", options=["-n", "-1", "-c", "80", "-sys", ""])
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.expect_complaint(self.chat("hello", options=["-n", "-2"]), 2, "-n", "or -1")

    def test_saved_and_loaded_on_other_ranks(self):
        session = self.folder / "session"
        done = self.chat("hello", f"/save {session}", ranks=2)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        names = " ".join(sorted(path.name for path in self.folder.glob("session*")))
        self.assertRegex(names, r"\Asession session\.([0-9a-f]{16})\.0-of-2 session\.\1\.1-of-2\Z")
        done = self.chat("and you?", ranks=3, options=["--load", session])
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    @unittest.skipUnless(os.geteuid() == 0, "only root mounts")
    def test_full_disk(self):
        # One page for the small file, and one of the several that the cache would take.
        with small_disk(self.folder / "disk", 8192) as disk:
            for ranks in (1, 2):
                self.expect_complaint(self.chat("hello", f"/save {disk / 'session'}", ranks=ranks), 1, "No space left")
                self.assertEqual(list(disk.iterdir()), [], "nothing is left")

    @unittest.skipUnless(os.geteuid() == 0, "only root mounts")
    def test_full_disk_keeps_what_was_saved_before(self):
        with small_disk(self.folder / "disk", 65536) as disk:
            self.assertEqual(self.chat("hello", f"/save {disk / 'session'}", ranks=1).returncode, 0)
            before = {path.name: path.read_bytes() for path in disk.iterdir()}
            (disk / "filler").write_bytes(bytes(65536 - 4096 * sum(-(-len(data) // 4096) for data in before.values())))
            self.expect_complaint(self.chat("hello again", f"/save {disk / 'session'}", ranks=1), 1, "No space left")
            (disk / "filler").unlink()
            self.assertEqual({path.name: path.read_bytes() for path in disk.iterdir()}, before)

    def test_folder_that_cannot_be_written(self):
        for path in (self.folder / "none" / "session", self.model / "session"):
            done = self.chat("hello", f"/save {path}")
            self.assertIn(done.returncode, (1, 2))
            self.expect_complaint(done, done.returncode, str(path))
        self.assertEqual([path.name for path in self.folder.iterdir()], ["tiny.gguf"])

    def test_what_cannot_be_loaded(self):
        self.expect_complaint(self.chat("a", options=["--load", self.folder / "none"]), 2, "none")
        (self.folder / "text").write_text("not a chat")
        self.expect_complaint(self.chat("a", options=["--load", self.folder / "text"]), 2, "text")
        session = self.folder / "session"
        self.chat("hello", f"/save {session}")
        part, = self.folder.glob("session.*.1-of-2")
        part.write_bytes(part.read_bytes()[:-1])
        done = self.chat("a", options=["--load", session])
        self.assertIn(done.returncode, (1, 2))
        self.expect_complaint(done, done.returncode, part.name)
        part.unlink()
        done = self.chat("a", options=["--load", session])
        self.assertIn(done.returncode, (1, 2))
        self.expect_complaint(done, done.returncode, "session")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)

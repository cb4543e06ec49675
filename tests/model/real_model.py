"""The default model's file, for tests that want a real one: $PANDO_TEST_MODEL (scripts/test sets it), or else what
scripts/fetch-model left in its cache folder.

    MODEL = real_model.path()

    @unittest.skipUnless(MODEL, real_model.NONE)
    class GenerateTest(unittest.TestCase): ...
"""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The environment of a program that finds no model by itself.
WITHOUT_DEFAULT = {**os.environ, "PANDO_MODEL": "", "PANDO_CACHE_DIR": str(ROOT / "no such folder")}
NONE = "the model is not here: run scripts/fetch-model, or set PANDO_TEST_MODEL to it"


def path():
    """None if there is none. A path in $PANDO_TEST_MODEL is taken as it is, so that a wrong one fails and is not skipped."""
    chosen = os.environ.get("PANDO_TEST_MODEL")
    if chosen:
        return chosen
    run = subprocess.run([sys.executable, ROOT / "scripts/fetch-model", "--cached"], capture_output=True, text=True,
                         check=False)
    return run.stdout.strip() or None

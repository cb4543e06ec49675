"""What the golden files hold and how they are compared: shared by the recorder, the tests and the benchmark.

Python's standard library only.
"""

import array
import json
import math
import pathlib
import zlib

FOLDER = pathlib.Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
CORPUS = FOLDER / "corpus"
GOLDEN = FOLDER / "golden"
MODELS = FOLDER / "models"
CHRONICLE = ROOT / "examples/data/chronicle.txt"

# What the tiny models read: tokens of all kinds in no order, long enough for scaled positions to matter.
TINY_TOKENS = [(i * 37 + i * i * 5 + 11) % 257 for i in range(96)]
TINY_POSITIONS = [40, 95]
TINY_LAST = 95

# One window, of which all tokens but the first are scored. Rounding moves the loss of single tokens by some 0.1: the standard
# error of the difference between two ways to round is 0.14 % of the perplexity, in llama.cpp too.
PERPLEXITY_WINDOW = 4096
PERPLEXITY_STRIDE = 4095
PERPLEXITY_KV_TYPES = ["f16", "f32", "q8_0"]
EXACT_PERPLEXITY_WINDOW = 1024
CHRONICLE_POSITIONS = [63, 255, 511]
TOP = 8
GREEDY_TOKENS = 32
DECIDED_MARGIN = 0.1  # in logits; rounding moves them by 0.1 to 0.3
PROMPT_KINDS = ["decided", "undecided"]

IDS_PER_CHECK = 128
MOST_IDS_KEPT = 2000


def load(name):
    return json.loads((GOLDEN / name).read_text())


def prompts(kind):
    """Ten texts to go on with. "decided": llama.cpp itself says the same for 32 tokens with flash attention on and off, with
    keys and values in f16 and f32, and with weights in float32, and no two candidates are closer than DECIDED_MARGIN:
    another program can be asked to say the same. "undecided": not so; somewhere the rounding of activations decides."""
    return json.loads((FOLDER / "prompts.json").read_text())[kind]


def corpus_files():
    return sorted(CORPUS.iterdir()) + [CHRONICLE]


def digest(ids):
    """A long list of tokens in few letters: its length, and a checksum for every 128 tokens, so that a test can say where
    two lists part. Short lists are kept as they are."""
    checks = [f"{zlib.crc32(array.array('i', ids[i:i + IDS_PER_CHECK]).tobytes()):08x}"
              for i in range(0, len(ids), IDS_PER_CHECK)]
    kept = {"ids": list(ids)} if len(ids) <= MOST_IDS_KEPT else {}
    return {"count": len(ids), "checks": checks, **kept}


def difference(ids, golden):
    """None if `ids` have this digest, or else a sentence on where they part."""
    own = digest(ids)
    if own["checks"] == golden["checks"] and own["count"] == golden["count"]:
        return None
    block = next((i for i, (a, b) in enumerate(zip(own["checks"], golden["checks"])) if a != b),
                 min(len(own["checks"]), len(golden["checks"])))
    first = block * IDS_PER_CHECK
    expected = golden.get("ids", [])[first:first + IDS_PER_CHECK] or "(not kept)"
    return (f"{own['count']} tokens where llama.cpp has {golden['count']}; they part in tokens {first} to "
            f"{first + IDS_PER_CHECK}: {ids[first:first + IDS_PER_CHECK]}, llama.cpp: {expected}")


def rms(a, b):
    """Root of the mean square of the differences."""
    assert len(a) == len(b) and len(a) > 0
    return math.sqrt(sum((x - y) ** 2 for x, y in zip(a, b)) / len(a))


def first_difference(a, b):
    """Where two lists part, or None if they are equal."""
    for i, (x, y) in enumerate(zip(a, b)):
        if x != y:
            return i
    return None if len(a) == len(b) else min(len(a), len(b))

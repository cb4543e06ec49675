#!/usr/bin/env python3
"""Makes docs/reproduction.md and its figures: the paper's experiments, measured where they can be, simulated where not.

    simulation/reproduction/reproduce.py --pando build/release/bin/pando [--only latency,hosts] [--reuse]

scripts/reproduce builds what is needed and runs this. Results are kept in build/reproduction; --reuse writes the text
from those.
"""

import argparse
import pathlib
import sys
import time

import hosts
import latency
import memory
import models
import program
import scaling

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_SECTIONS = {"latency": latency, "models": models, "memory": memory, "hosts": hosts, "scaling": scaling}

_INTRODUCTION = """# The paper's experiments, side by side

Made by `scripts/reproduce`; do not edit. The paper is *Tree Attention: Topology-aware Decoding for Long-Context Attention
on GPU clusters* (arXiv 2408.04093). Every section says in its title whether its numbers were **measured here** or
**simulated**.

**Simulated** means: Pando's own MPI transport, schedules, ring and planner run, every rank of them, on SimGrid's network
model; what a rank would compute takes the time that its device's memory bandwidth and arithmetic allow. That is an idealised
machine: links share bandwidth fairly and never stall, no rank is late, a kernel starts after a constant time, and only latency,
bandwidth and a cost per message are known of a link. The figures and their sources are in `simulation/platforms/`; those
marked as assumptions there (latencies and overheads above all) move the absolute times of tree and direct, which are a
handful of messages, and hardly those of ring, which is bandwidth. Nothing is calibrated to the paper's results, but for
one table that says so.

**Measured here** means: on one machine, {machine}, on {date}. All runs behind this document, measured and simulated, took
{minutes:.0f} minutes on it.

1 kB is 1000 bytes, 1 MB a million; tokens are counted in full.
"""


class Figures:
    """The folder of the figures."""

    def __init__(self, folder):
        self._folder = pathlib.Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)

    def path(self, name):
        return str(self._folder / name)

    def write(self, name, content):
        (self._folder / name).write_text(content, encoding="utf-8")
        return self.path(name)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pando", default=_ROOT / "build/release/bin/pando")
    parser.add_argument("--docs", default=_ROOT / "docs", help="where reproduction.md and figures/ go")
    parser.add_argument("--kept", default=_ROOT / "build/reproduction", help="where results are kept")
    parser.add_argument("--reuse", action="store_true", help="take results that are kept")
    parser.add_argument("--only", default=",".join(_SECTIONS),
                        help="sections to print, with figures beside what is kept, instead of writing the document")
    return parser.parse_args()


def main():
    arguments = parse()
    names = arguments.only.split(",")
    unknown = sorted(set(names) - set(_SECTIONS))
    if unknown:
        sys.exit(f"reproduce: unknown section '{unknown[0]}': there are {', '.join(_SECTIONS)}")
    start = time.monotonic()
    pando = program.Program(arguments.pando, arguments.kept, arguments.reuse)
    docs = pathlib.Path(arguments.docs)
    is_whole = len(names) == len(_SECTIONS)
    figures = Figures((docs if is_whole else pathlib.Path(arguments.kept)) / "figures")
    parts = []
    for name in names:
        print(f"{name}:", file=sys.stderr, flush=True)
        parts.append(_SECTIONS[name].section(pando, figures))
    if not is_whole:
        print("\n".join(parts))
        return
    introduction = _INTRODUCTION.format(machine=pando.kept("machine", program.machine), date=" and ".join(sorted(pando.dates)),
                                        minutes=pando.seconds / 60)
    (docs / "reproduction.md").write_text("\n".join([introduction, *parts]), encoding="utf-8")
    print(f"wrote {docs / 'reproduction.md'} in {(time.monotonic() - start) / 60:.1f} minutes", file=sys.stderr)


if __name__ == "__main__":
    main()

"""The pando program, through its command line and JSON."""

import json
import os
import subprocess

# OpenMP binds the first thread of this process to one core, for llama.cpp's sake, and a child would inherit that.
ALL_CORES = range(os.cpu_count())


def _use_all_cores():
    os.sched_setaffinity(0, ALL_CORES)


class PandoProgram:
    def __init__(self, program, model):
        self.program = str(program)
        self.model = str(model)

    def version(self):
        return subprocess.run([self.program, "--version"], capture_output=True, text=True, check=True).stdout.strip()

    def tokenize(self, file, *options):
        return self._json("tokenize", "-f", file, "-o", "json", *options)

    def greedy(self, prompt, count, *options):
        return self._json("generate", "-p", prompt, "-n", count, "--temp", 0, "--ignore-eos", "--json", *options)["tokens"]

    def logits(self, tokens, position, *options):
        """All logits behind one token."""
        rows = self._json("logits", "--tokens", ",".join(map(str, tokens)), "--positions", position, "--top", 0,
                          "-o", "json", *options)
        values = {row["token"]: row["logit"] for row in rows}
        return [values[token] for token in range(len(values))]

    def perplexity(self, file, window, stride, *options):
        return self._json("perplexity", "-f", file, "-c", window, "--stride", stride, "-o", "json", *options)

    def bench(self, prompt, generate, depth, threads, repeats):
        return self._json("bench", "model", "-p", prompt, "-n", generate, "-d", depth, "-t", threads, "-r", repeats, "-o", "json")

    def _json(self, *arguments):
        command = [self.program, *map(str, arguments), "-m", self.model]
        run = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=_use_all_cores)
        if run.returncode != 0:
            raise SystemExit(f"compare: {' '.join(command[:3])} ended with {run.returncode}: {run.stderr.strip()}")
        return json.loads(run.stdout)

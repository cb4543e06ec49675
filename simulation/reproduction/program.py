"""Runs the pando program and keeps what it said, so that the text can be written anew without measuring again."""

import datetime
import json
import os
import pathlib
import subprocess
import sys
import time


def machine():
    """What this machine is, in words."""
    lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "a processor without a name")
    return f"{os.cpu_count()} cores of {model}"


class Program:
    """`pando`, with its answers kept in a folder: one JSON file for each name."""

    def __init__(self, pando, folder, reuse):
        self.pando = str(pathlib.Path(pando).resolve())
        self._folder = pathlib.Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._reuse = reuse
        # Of all that was asked for: how long it took to make, and when.
        self.seconds = 0
        self.dates = set()

    def kept(self, name, make):
        """What `make` returned, now or in an earlier run."""
        file = self._folder / f"{name}.json"
        if not (self._reuse and file.exists()):
            print(f"  {name}", file=sys.stderr, flush=True)
            start = time.monotonic()
            made = make()
            entry = {"date": datetime.date.today().isoformat(), "seconds": time.monotonic() - start, "made": made}
            file.write_text(json.dumps(entry, indent=1), encoding="utf-8")
        entry = json.loads(file.read_text(encoding="utf-8"))
        self.seconds += entry["seconds"]
        self.dates.add(entry["date"])
        return entry["made"]

    def rows(self, *arguments, before=()):
        """The rows of a command with `-o json`. `before` is what starts it: mpirun on hosts, say."""
        command = [*before, self.pando, *map(str, arguments), "-o", "json"]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"reproduce: {' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
        return json.loads(done.stdout)

    def peak_resident_bytes(self, *arguments):
        """The most memory that the command ever held."""
        script = ("import resource, subprocess, sys\n"
                  "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)\n"
                  "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
        command = [sys.executable, "-c", script, self.pando, *map(str, arguments)]
        kilobytes = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return int(kilobytes) * 1024

"""Runs the pando program and keeps what it said, so that the text can be written anew without measuring again."""

import json
import pathlib
import subprocess
import sys


class Program:
    """`pando`, with its answers kept in a folder: one JSON file for each name."""

    def __init__(self, pando, folder, reuse):
        self.pando = str(pathlib.Path(pando).resolve())
        self._folder = pathlib.Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._reuse = reuse

    def kept(self, name, make):
        """What `make` returned, now or in an earlier run."""
        file = self._folder / f"{name}.json"
        if self._reuse and file.exists():
            return json.loads(file.read_text())
        print(f"  {name}", file=sys.stderr, flush=True)
        made = make()
        file.write_text(json.dumps(made, indent=1))
        return made

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

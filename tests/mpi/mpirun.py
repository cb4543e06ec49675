#!/usr/bin/env python3
"""Starts a program as several ranks on this machine, with the MPI launcher of the build, OpenMPI's or MPICH's.

    mpirun.py [--launcher mpiexec] -n RANKS [--recover] PROGRAM [ARGUMENT...]

It knows what the two want: OpenMPI to be allowed more ranks than cores, and to run as root. With --recover, a rank that
is lost or ends with an error does not make the launcher end the others. Exits as the launcher does.
"""

import argparse
import os
import shutil
import subprocess
import sys


def is_openmpi(launcher):
    version = subprocess.run([launcher, "--version"], capture_output=True, text=True, check=False)
    return "Open MPI" in version.stdout or "OpenRTE" in version.stdout


def command(launcher, num_ranks, program, recover=False):
    """The command line, and the environment to run it in."""
    environment = dict(os.environ)
    line = [launcher, "-n", str(num_ranks)]
    if is_openmpi(launcher):
        environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        line += ["--oversubscribe", "--bind-to", "none"]
        if num_ranks > (os.cpu_count() or 1):
            line += ["--mca", "mpi_yield_when_idle", "1"]
        if recover:
            line += ["--enable-recovery", "--mca", "orte_abort_on_non_zero_status", "0"]
    elif recover:
        line += ["-disable-auto-cleanup"]
    return line + program, environment


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--launcher", default="mpiexec")
    parser.add_argument("-n", dest="num_ranks", type=int, required=True)
    parser.add_argument("--recover", action="store_true")
    parser.add_argument("program", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    if not shutil.which(arguments.launcher):
        sys.exit(f"mpirun.py: there is no {arguments.launcher}")
    line, environment = command(arguments.launcher, arguments.num_ranks, arguments.program, arguments.recover)
    return subprocess.run(line, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Builds a fuzzer with clang and runs it for a while.

    tests/fuzz/run_fuzzer.py gguf [--seconds 20] [--build-dir build/fuzz]

What it finds to be worth keeping is in BUILD_DIR/found/gguf and is where the next run begins, beside the seeds in the tree.
An input that breaks something is kept in BUILD_DIR/crashes/gguf; the fuzzer, given that file, runs it again. Exit code 77
without clang.
"""

import argparse
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77
SANITIZERS = "fuzzer-no-link,address,undefined"


def compilers():
    for suffix in ("-14", ""):
        pair = shutil.which(f"clang{suffix}"), shutil.which(f"clang++{suffix}")
        if all(pair):
            return pair
    return None


def build(fuzzer, folder, c_compiler, cxx_compiler):
    # The library alone, and of it only what the fuzzer links.
    off = [f"-DPANDO_{name}=OFF" for name in ("BUILD_TESTS", "BUILD_PROGRAM", "BUILD_EXAMPLES", "WITH_MPI")]
    subprocess.run(["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
                    "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -g1", "-DCMAKE_UNITY_BUILD=ON",
                    f"-DCMAKE_C_COMPILER={c_compiler}", f"-DCMAKE_CXX_COMPILER={cxx_compiler}", "-DPANDO_BUILD_FUZZERS=ON",
                    f"-DPANDO_SANITIZE={SANITIZERS}", *off], check=True)
    subprocess.run(["cmake", "--build", folder, "--target", f"{fuzzer}_fuzzer"], check=True)


def run(fuzzer, folder, seconds):
    found, crashes = folder / "found" / fuzzer, folder / "crashes" / fuzzer
    for one in (found, crashes):
        one.mkdir(parents=True, exist_ok=True)
    # The limit of memory is far below what a count in a file could ask for.
    command = [folder / "bin" / f"{fuzzer}_fuzzer", f"-max_total_time={seconds}", "-seed=20240804", "-rss_limit_mb=512",
               "-malloc_limit_mb=64", "-timeout=5", "-max_len=16384", f"-artifact_prefix={crashes}/", "-print_final_stats=1",
               "-verbosity=0", found, ROOT / "tests/fuzz" / fuzzer / "corpus"]
    return subprocess.run(command, check=False).returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fuzzer", choices=["gguf"])
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--build-dir", type=pathlib.Path, default=ROOT / "build/fuzz")
    arguments = parser.parse_args()
    found = compilers()
    if found is None:
        print("run_fuzzer: there is no clang here: scripts/install-deps test installs it")
        return SKIPPED
    folder = arguments.build_dir.resolve()
    build(arguments.fuzzer, folder, *found)
    return run(arguments.fuzzer, folder, arguments.seconds)


if __name__ == "__main__":
    sys.exit(main())

"""The virtual environment with llama.cpp, built for this machine. Python's standard library only.

It is kept in the cache folder of scripts/fetch-model and made once per version: about ten minutes on two cores.

llama.cpp is compiled with GGML_NATIVE for all that the machine has, but for AMX: GCC 12 drops the stores to the tile
configuration that llama.cpp's AMX kernels rely on, and the first of them ends with SIGILL. Undefining __AMX_INT8__, which
guards those kernels, leaves AVX-512 and VNNI as they are. NOTE says so in every report.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import venv

LLAMA_CPP_PYTHON = "0.3.36"  # with llama.cpp at 0c1e57098bba
PACKAGES = [f"llama-cpp-python=={LLAMA_CPP_PYTHON}", "gguf==0.19.0", "numpy==2.4.6"]
CMAKE_ARGS = ("-DGGML_NATIVE=ON -DLLAVA_BUILD=OFF "
              "-DCMAKE_C_FLAGS=-U__AMX_INT8__ -DCMAKE_CXX_FLAGS=-U__AMX_INT8__")
NOTE = (f"llama.cpp of llama-cpp-python {LLAMA_CPP_PYTHON}, built from source with GGML_NATIVE=ON and AMX off "
        "(-U__AMX_INT8__: compiled by GCC 12 its AMX kernels end with SIGILL)")


def cache_folder():
    chosen = os.environ.get("PANDO_CACHE_DIR")
    if chosen:
        return pathlib.Path(chosen).absolute()
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache", "pando").absolute()


def interpreter():
    """The environment's Python; makes the environment if it is not there."""
    folder = cache_folder() / f"llama-cpp-python-{LLAMA_CPP_PYTHON}"
    python, ready = folder / "bin/python", folder / "ready"
    if ready.exists():
        return python
    print(f"Making {folder}: llama.cpp is compiled, which takes minutes", file=sys.stderr)
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, with_pip=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-binary",
                    "llama-cpp-python", *PACKAGES], env={**os.environ, "CMAKE_ARGS": CMAKE_ARGS}, check=True)
    ready.touch()
    return python

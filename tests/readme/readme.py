"""Keeps README.md true, and other documents with programs in them.

    readme.py --readme docs/api.md extract-cpp OUT      writes the document's C++ program to OUT, to be compiled
    readme.py --readme docs/api.md extract-c OUT        writes its C program
    readme.py --readme docs/api.md check-output PROGRAM runs it and compares with the document's ```text block
    readme.py --readme README.md same-as FILE           checks that the document's C++ program is this file
    readme.py --readme README.md run-commands BUILD     runs every line of the ```sh blocks against a build folder
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Commands that are not run as they stand: a test cannot build the build it is part of. What holds for them instead: the
# named file has the named line, which is what runs there or here.
STANDS_FOR = {
    # docs/usage.md has the same command with another document.
    "scripts/demo": ("scripts/demo", 'exec build/release/bin/pando demo -m "$model" --document examples/data/chronicle.txt \\'),
    "scripts/test": (".ci/run", "scripts/test"),
    "scripts/reproduce": ("scripts/reproduce", 'exec python3 simulation/reproduction/reproduce.py "$@"'),
}


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def the_block(text, language):
    found = blocks(text, language)
    if len(found) != 1:
        sys.exit(f"the document has {len(found)} blocks of {language}: this test knows how to check exactly one")
    return found[0]


def extract(text, language, out):
    pathlib.Path(out).write_text(the_block(text, language), encoding="utf-8")


def check_same(text, file):
    if the_block(text, "cpp") != pathlib.Path(file).read_text(encoding="utf-8"):
        sys.exit(f"the document's C++ program is not {file}: copy the file into the document")


def check_output(text, program):
    printed = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    if printed != the_block(text, "text"):
        sys.exit(f"the document's program printed\n{printed}and the document says\n{the_block(text, 'text')}")


def check_stand_in(root, command):
    file, line = STANDS_FOR[command]
    if not os.access(root / command, os.X_OK):
        sys.exit(f"{command} is not a program")
    if line not in (root / file).read_text(encoding="utf-8").splitlines():
        sys.exit(f"{file} no longer has the line '{line}', which stands for '{command}' in this test")


def environment(home):
    # OpenMPI takes no more ranks than cores, and no root, unless told: a test machine may be either.
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"}
    # A model that is fetched already stays where it is.
    cache = os.environ.get("PANDO_CACHE_DIR") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "pando")
    return {**os.environ, **allowed, "HOME": home, "PANDO_CACHE_DIR": cache}


def commands_of(document):
    text = document.read_text(encoding="utf-8")
    return [line for block in blocks(text, "sh") for line in block.splitlines() if line.strip()]


def run_commands(document, build):
    commands = commands_of(document)
    if document.name == "README.md" and commands[:2] != ["scripts/demo", "scripts/test"]:
        sys.exit("the README does not start with scripts/demo and scripts/test")
    if not any(command.startswith("build/release/bin/pando demo -m") for command in commands_of(ROOT / "docs/usage.md")):
        sys.exit("docs/usage.md does not show `pando demo -m`, so nothing here runs what scripts/demo runs")
    with tempfile.TemporaryDirectory() as home:
        for command in commands:
            print(f"$ {command}", flush=True)
            if command in STANDS_FOR:
                check_stand_in(ROOT, command)
                continue
            here = command.replace("build/release", str(build))
            code = subprocess.run(["sh", "-c", here], cwd=ROOT, env=environment(home), check=False).returncode
            if code != 0:
                sys.exit(f"'{command}' ended with exit code {code}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--readme", type=pathlib.Path, required=True)
    parser.add_argument("action", choices=["extract-cpp", "extract-c", "check-output", "same-as", "run-commands"])
    parser.add_argument("argument")
    arguments = parser.parse_args()
    text = arguments.readme.read_text(encoding="utf-8")
    if arguments.action.startswith("extract-"):
        extract(text, arguments.action.removeprefix("extract-"), arguments.argument)
    elif arguments.action == "check-output":
        check_output(text, arguments.argument)
    elif arguments.action == "same-as":
        check_same(text, arguments.argument)
    else:
        run_commands(arguments.readme, pathlib.Path(arguments.argument).resolve())


if __name__ == "__main__":
    main()

"""The comparison itself, run by `compare` inside the environment with llama.cpp."""

import argparse
import json
import pathlib
import sys

import agreement
import environment
import report
import speed
from oracle import describe
from pando_program import PandoProgram

ROOT = pathlib.Path(__file__).resolve().parents[2]
PARTS = ["tokens", "logits", "greedy", "exact", "perplexity", "speed"]


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(prog="compare", description="Compares Pando with llama.cpp on one model file.")
    parser.add_argument("-m", "--model", type=pathlib.Path, required=True)
    parser.add_argument("--pando", type=pathlib.Path, default=ROOT / "build/release/bin/pando")
    parser.add_argument("--parts", default=",".join(PARTS), help=f"of {','.join(PARTS)}")
    parser.add_argument("-t", "--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5, help="turns that each side takes in a row of speed")
    parser.add_argument("--depths", default="0,2048,8192", help="for speed")
    parser.add_argument("--json", type=pathlib.Path, help="also write all data to this file")
    return parser.parse_args(arguments)


def main():
    arguments = parse_arguments(sys.argv[1:])
    pando = PandoProgram(arguments.pando, arguments.model)
    model, threads = arguments.model, arguments.threads
    depths = [int(depth) for depth in arguments.depths.split(",")]
    parts = {"tokens": lambda: agreement.compare_tokens(pando, model),
             "logits": lambda: agreement.compare_logits(pando, model, threads),
             "greedy": lambda: agreement.compare_greedy(pando, model, threads),
             "exact": lambda: agreement.compare_exact_greedy(pando, model, threads),
             "perplexity": lambda: agreement.compare_perplexity(pando, model, threads),
             "speed": lambda: speed.measure(pando, model, threads, arguments.rounds, depths)}
    wanted = arguments.parts.split(",")
    unknown = set(wanted) - set(PARTS)
    if unknown:
        sys.exit(f"compare: there is no part {', '.join(sorted(unknown))}: the parts are {', '.join(PARTS)}")
    result = {"pando": pando.version(), "note": environment.NOTE, **describe(), "model": model.name, "threads": threads,
              "rounds": arguments.rounds, "python_overhead_us": speed.python_overhead_us()}
    for part in wanted:
        print(f"comparing {part} ...", file=sys.stderr)
        result[part] = parts[part]()
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1) + "\n")
    print(report.render(result))


if __name__ == "__main__":
    main()

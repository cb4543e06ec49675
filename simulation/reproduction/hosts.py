"""Four hosts on links of 1 Gbit/s: measured across network namespaces of this machine, and simulated."""

import json
import pathlib
import subprocess
import sys

import text

_STRATEGIES = ["tree", "direct", "paper", "ring"]
_HOSTS = 4
_CONTEXT = 65536
_RUN = pathlib.Path(__file__).resolve().parents[2] / "tests" / "hosts" / "run"


def _on_hosts(program, *arguments):
    start = [sys.executable, str(_RUN), "--hosts", str(_HOSTS), "--", "mpirun", "-n", str(_HOSTS), "-N", "1"]
    return program.rows(*arguments, before=start)


def _measure(program):
    probe = subprocess.run([sys.executable, str(_RUN), "--", "true"], capture_output=True, text=True, check=False)
    if probe.returncode != 0:
        return {"skipped": probe.stdout.strip() or probe.stderr.strip()}
    rows = _on_hosts(program, "bench", "decode", "--contexts", _CONTEXT, "--strategies", ",".join(_STRATEGIES), "-r", 9,
                     "--budget", 30)
    topology = _on_hosts(program, "topology")
    return {"rows": rows, "topology": topology}


def _platform(measured):
    """The hosts as a platform: latency and overheads as measured, the links' rate, and memory as tree's attention read it."""
    link = next(link for link in measured["topology"]["links"] if link["link"] == "between nodes")
    alone = next(row for row in measured["rows"] if row["strategy"] == "direct")
    read = alone["peak_kv_bytes"] / (alone["compute_us"] / 1e6)
    # They are parts of the latency, but for the digits that the program prints.
    scale = min(1, link["latency_us"] / (1.000001 * (link["send_us"] + link["receive_us"])))
    between = {"latency_seconds": link["latency_us"] / 1e6, "bytes_per_second": 125e6,
               "send_overhead_seconds": scale * link["send_us"] / 1e6,
               "receive_overhead_seconds": scale * link["receive_us"] / 1e6,
               "source": "1 Gbit/s is what the links are shaped to; the rest as pando topology measured it on the hosts"}
    return {"name": "hosts-1g", "description": "Four namespaces of one machine on links of 1 Gbit/s",
            "max_nodes": _HOSTS, "ranks_per_node": 1, "ports_per_node": 1,
            "source": "tests/hosts/run makes them: four hosts, one rank and one link each",
            "device": {"memory_bytes": 1e9, "memory_bytes_per_second": read, "flops_per_second": 1e15,
                       "launch_overhead_seconds": 0,
                       "source": "what the hosts' own attention read per second, all four at once on shared cores; arithmetic is in it"},
            "within_node": dict(between, source="unused: one rank on each host"), "between_nodes": between}


def section(program, figures):
    measured = program.kept("hosts", lambda: _measure(program))
    if "skipped" in measured:
        return f"## Four hosts at 1 Gbit/s (not measured)\n\nThis machine has no network namespaces: {measured['skipped']}\n"
    file = figures.write("hosts-1g.json", json.dumps(_platform(measured), indent=2) + "\n")
    # The schedules that were measured: on other figures the planner might choose another for tree.
    schedules = ",".join(dict.fromkeys(row["schedule"] for row in measured["rows"]))
    simulated = {row["strategy"]: row for row in program.kept("hosts-simulated", lambda: program.rows(
        "simulate", "--platform", file, "--nodes", _HOSTS, "--contexts", _CONTEXT, "--strategies", schedules, "--shape",
        "32/8x128"))}
    lines = []
    for row in measured["rows"]:
        expected = simulated[row["schedule"]]
        both = [(row["compute_us"], expected["kv_us"]), (row["merge_us"], expected["merge_us"])]
        lines.append([row["strategy"], row["schedule"], text.seconds(row["median_us"] / 1e6),
                      text.seconds(row["spread_us"] / 1e6), text.seconds(expected["step_us"] / 1e6),
                      f"{row['median_us'] / expected['step_us']:.2f}",
                      *(f"{text.seconds(mine / 1e6)} / {text.seconds(simulation / 1e6)}" for mine, simulation in both),
                      f"{row['messages_per_rank']} / {expected['messages_per_rank']}",
                      f"{text.size(row['bytes_per_rank'])} / {text.size(expected['bytes_per_rank'])}"])
    return f"""## Four hosts at 1 Gbit/s (measured here, and simulated)

Four network namespaces of this machine, each with a link of 1 Gbit/s to a switch, one MPI rank on each; 32 heads on 8 KV
heads x 128, f16, {text.tokens(_CONTEXT)} tokens; medians of the repeats. The simulator has the same platform
([hosts-1g.json](figures/hosts-1g.json)): links of 1 Gbit/s with the latency and overheads that `pando topology` measured between
two hosts, and memory at the speed at which the four hosts' own attention read it in the row `direct`. So **the compute of tree,
direct and paper is calibrated**, and what the simulator predicts is their merge and the whole of ring (which overlaps: all of
its time is in the first of the two columns).

{text.table(["strategy", "schedule", "measured", "spread", "simulated", "measured / simulated", "compute, measured / simulated",
             "merge, measured / simulated", "messages, measured / simulated", "bytes, measured / simulated"], lines)}

The messages and bytes of `paper` are MPI's three collectives and the sizes of their operands: what MPI sends for them is not
known to the program. Ring is what the link says, and the simulator has it. Tree's merge is a few small messages between four ranks that share
two cores with each other and with the kernel's own network stack: part of what is measured is waiting for a core, which the
simulation, where every host has its own, does not have.
"""

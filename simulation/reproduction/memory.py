"""The paper's memory figure and the communication volume, measured by running both strategies on this machine."""

import chart
import paper
import text

_HEAD_DIM = 128
_RANKS = 2


def _decode(program, name, hidden_size, context, ranks, strategies, kv_type="bf16"):
    heads = hidden_size // _HEAD_DIM
    arguments = ["bench", "decode", "--contexts", context, "--ranks", ranks, "--heads", heads, "--kv-heads", heads,
                 "--head-dim", _HEAD_DIM, "--kv-type", kv_type, "-r", 1]

    def measure():
        found = {}
        for strategy in strategies:
            line = [*arguments, "--strategies", strategy]
            found[strategy] = {**program.rows(*line)[0], "resident": program.peak_resident_bytes(*line)}
        return found

    return program.kept(name, measure)


def section(program, figures):
    lines, groups = [], []
    for hidden_size, said in paper.MEMORY_MB.items():
        context = _RANKS * paper.MEMORY_TOKENS_PER_DEVICE
        found = _decode(program, f"memory-{hidden_size}", hidden_size, context, _RANKS, ["tree", "ring"])
        counted = found["ring"]["peak_kv_bytes"] - found["tree"]["peak_kv_bytes"]
        resident = (found["ring"]["resident"] - found["tree"]["resident"]) / _RANKS
        formula = 4 * paper.MEMORY_TOKENS_PER_DEVICE * hidden_size
        groups.append((f"hidden size {hidden_size}", [
            ("tree, resident per rank", "tree", found["tree"]["resident"] / _RANKS),
            ("ring, resident per rank", "ring", found["ring"]["resident"] / _RANKS),
            ("ring - tree, measured", "ring, pale", resident), ("ring - tree, paper", "paper", said * 1e6)]))
        lines.append([hidden_size, f"{said} MB", text.size(formula), text.size(counted), text.size(resident)])
    figures.write("memory.svg", chart.bars(
        "Memory of a decode step", f"Measured: two ranks in one process, {text.tokens(paper.MEMORY_TOKENS_PER_DEVICE)} tokens on "
        "each, bf16; and what the paper reports", groups, text.size))
    volume = []
    for ranks in (2, 4, 8):
        found = _decode(program, f"volume-{ranks}", 2048, 65536, ranks,
                        ["tree", "direct", "reduce-scatter", "paper", "ring"])
        for strategy, row in found.items():
            volume.append([f"{ranks} ranks, {strategy}" + (f" ({row['schedule']})" if strategy == "tree" else ""),
                           row["messages_per_rank"], text.size(row["bytes_per_rank"]),
                           text.size(row["formula_bytes_per_rank"])])
    return f"""## Memory (measured here)

Both strategies run for real on this machine, on two ranks with {text.tokens(paper.MEMORY_TOKENS_PER_DEVICE)} tokens on each
(the paper does not say how many; its formula gives its figures for these), bf16 keys and values, no shared KV heads. What
ring needs more than tree on each rank:

![resident memory of tree and ring, and the difference beside the paper's](figures/memory.svg)

{text.table(["hidden size", "paper", "formula, 2 b t d elements", "counted by the program", "resident memory"], lines)}

*Counted*: the keys, values and buffers of the rank that has most (`peak_kv_bytes`). Both ranks have half of the 2000 chunks of 64
tokens, so ring holds as much again as tree: the formula's. *Resident*: the peak resident size of
the process that runs ring, less that of the one that runs tree, for each of its two ranks. With more than two ranks ring
holds two foreign shards, one to read and one that arrives: 3 shards in all, where the paper counts 2.

## Bytes on the way (counted here)

One decode step of one layer, 16 heads x 128, 65,536 tokens, bf16, ranks as threads of this machine. Bytes of the rank that
sends most; the formula is the paper's for ring (2 b t d p) and for all others (2 (p-1)/p (b d + 2 b heads), float32).

{text.table(["run", "messages", "bytes sent", "paper's formula"], volume)}

Ring sends p - 1 shards where the formula has p: the last hop is not needed. Tree's schedules send whole states in few hops
and so more bytes than an allreduce that cuts them into p pieces; at these sizes a message's latency outweighs its bytes.

**The simulator's counts** are those of a real run, exactly, where both have the same schedule and the same transport:
`tests/cli/simulate_test.py` compares butterfly, two-level, direct, reduce-scatter and ring in process, and all of these, allreduce
and paper under mpirun. Two rows above are therefore not what `pando simulate` prints: `paper` is three collectives of the
transport, which in process are Pando's own, counted message by message, and over MPI, so in simulation, MPI's, counted as one
message with the bytes of the operand; and `tree` is the schedule that the planner finds fastest on the links at hand.
"""

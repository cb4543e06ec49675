"""The paper's latency figure: one attention block on 8, 64 and 128 H100."""

import chart
import paper
import text

_STRATEGIES = ["tree", "direct", "allreduce", "paper", "ring"]


def section(program, figures):
    rows = program.kept("latency", lambda: program.rows(
        "simulate", "--platform", "dgx-h100", "--nodes", ",".join(map(str, paper.BLOCK_NODES)), "--contexts",
        ",".join(map(str, paper.BLOCK_CONTEXTS)), "--strategies", ",".join(_STRATEGIES), "--shape",
        f"{paper.BLOCK_HEADS}x{paper.BLOCK_HEAD_DIM}"))
    time = {(row["nodes"], row["context"], row["strategy"]): row["step_us"] for row in rows}
    panels = []
    for nodes in paper.BLOCK_NODES:
        unit = time[nodes, paper.BLOCK_CONTEXTS[0], "ring"]
        panels.append({"title": f"{nodes * 8} H100", "lines": {
            name: [(context, time[nodes, context, name] / unit) for context in paper.BLOCK_CONTEXTS]
            for name in _STRATEGIES}})
    figures.write("latency.svg", chart.lines(
        "One attention block, 16 heads x 128 (simulated)", panels, "tokens of context", "time / ring at 80K",
        x_ticks=paper.BLOCK_CONTEXTS[::2], x_text=text.tokens))
    last = paper.BLOCK_CONTEXTS[-1]
    table = text.table(
        ["GPUs", "context", *_STRATEGIES, "ring / tree", "ring / direct"],
        [[nodes * 8, text.tokens(context), *(text.seconds(time[nodes, context, name] / 1e6) for name in _STRATEGIES),
          f"{time[nodes, context, 'ring'] / time[nodes, context, 'tree']:.0f}x",
          f"{time[nodes, context, 'ring'] / time[nodes, context, 'direct']:.0f}x"]
         for nodes in paper.BLOCK_NODES for context in (paper.BLOCK_CONTEXTS[0], 640_000, last)])
    ratio = time[16, last, "ring"] / time[16, last, "tree"]
    return f"""## Latency of one attention block (simulated)

16 heads x 128, f16 keys and values, decode of one token on 8, 64 and 128 H100 (`dgx-h100`), relative to ring at 80K
tokens on the same GPUs, as the paper draws it.

![time over context on 8, 64 and 128 H100](figures/latency.svg)

{table}

The paper reports {paper.BLOCK_SPEEDUP} for tree over ring on 128 GPUs with 5.12M tokens. Here ring takes **{ratio:.0f}x**
the time of tree. The distance is not tree's merit: an ideal ring must send {text.size(ring_bytes(rows))} per GPU through a
50 GB/s port for that one step, which no implementation can do in less than {text.seconds(ring_bytes(rows) / 50e9)}, while
all that tree needs is to read 1/128 of the cache and a handful of small messages. In the paper's measurements tree pays for three
NCCL collectives, their launches and their synchronisation, and both pay for a Python step around them; this fixed part
dominates tree and hardly matters to ring, and so shrinks the ratio. Against **direct** reduction, the baseline that tree
ought to be held against, the gain is {time[16, last, 'direct'] / time[16, last, 'tree']:.1f}x on 128 GPUs and
{time[1, last, 'direct'] / time[1, last, 'tree']:.2f}x on 8. (`allreduce` is the algorithm that OpenMPI's rules, as
SimGrid has them, take for an operator that is not commutative; on 128 ranks that is one that is linear in the ranks.)
"""


def ring_bytes(rows):
    return max(row["bytes_per_rank"] for row in rows if row["strategy"] == "ring" and row["nodes"] == 16)

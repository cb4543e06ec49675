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
        panels.append({"title": f"{nodes * 8} H100", "x_ticks": paper.BLOCK_CONTEXTS[::3], "lines": {
            name: [(context, time[nodes, context, name] / unit) for context in paper.BLOCK_CONTEXTS]
            for name in _STRATEGIES}})
    figures.write("latency.svg", chart.lines(
        "One attention block on H100, simulated", "16 heads x 128, f16, one token; time relative to ring at 80,000 tokens",
        panels, "context (tokens)", "time / ring at 80,000", x_text=text.tokens))
    last = paper.BLOCK_CONTEXTS[-1]
    table = text.table(
        ["GPUs", "context", *_STRATEGIES, "ring / tree", "ring / direct"],
        [[nodes * 8, text.tokens(context), *(text.seconds(time[nodes, context, name] / 1e6) for name in _STRATEGIES),
          f"{time[nodes, context, 'ring'] / time[nodes, context, 'tree']:.0f}x",
          f"{time[nodes, context, 'ring'] / time[nodes, context, 'direct']:.0f}x"]
         for nodes in paper.BLOCK_NODES for context in (paper.BLOCK_CONTEXTS[0], 640_000, last)])
    ratio = time[16, last, "ring"] / time[16, last, "tree"]
    hop_bytes = ring_bytes(rows) / 127
    return f"""## Latency of one attention block (simulated)

16 heads x 128, f16 keys and values, decode of one token on 8, 64 and 128 H100 (`dgx-h100`), relative to ring at
80,000 tokens on the same GPUs, as the paper draws it.

![time over context on 8, 64 and 128 H100](figures/latency.svg)

{table}

The paper reports {paper.BLOCK_SPEEDUP} for tree over ring on 128 GPUs with 5,120,000 tokens. Here ring takes **{ratio:.0f}x**
the time of tree. That number rests on two things and is no prediction of the paper's measurement:

- *Ring as it is built here.* The step is 127 hops of one shard, {text.size(hop_bytes)}. Seven of eight GPUs pass it on over NVLink, but
  the hop is over when the eighth has passed its own to the next node, through its one port of 50 GB/s:
  {text.seconds(hop_bytes / 50e9)}, 127 times. A ring that cut this shard in eight and used all ports of the node would take
  {text.seconds(hop_bytes / 400e9)} for the hop, about an eighth, and the ratio would be about {ratio / 8:.0f}x.
- *Tree without software.* Reading 1/128 of the cache and a handful of small messages take {text.seconds(time[16, last, "tree"] / 1e6)}. The paper
  measured three NCCL collectives and the software around them. Our guess: such a fixed part dominates tree's time and hardly
  matters to ring's, and so shrinks the ratio.

Against **direct** reduction, the baseline that tree
ought to be held against, the gain is {time[16, last, 'direct'] / time[16, last, 'tree']:.1f}x on 128 GPUs and
{time[1, last, 'direct'] / time[1, last, 'tree']:.2f}x on 8. (`allreduce` is the algorithm that OpenMPI's rules, as
SimGrid has them, take for an operator that is not commutative; on 128 ranks that is one that is linear in the ranks.)
"""


def ring_bytes(rows):
    return max(row["bytes_per_rank"] for row in rows if row["strategy"] == "ring" and row["nodes"] == 16)

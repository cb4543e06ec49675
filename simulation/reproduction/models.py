"""The paper's tables: decoding 10 tokens with Llama models on 8 H100, 4 MI300X and 2 RTX 4090."""

import chart
import fit
import paper
import text

_STRATEGIES = ["tree", "direct", "ring"]


def _simulate(program, entry):
    name = f"model-{entry['platform']}"
    rows = program.kept(name, lambda: program.rows(
        "simulate", "--platform", entry["platform"], "--ranks", entry["ranks"], "--model", entry["model"], "--contexts",
        ",".join(map(str, entry["seconds"])), "--strategies", ",".join(_STRATEGIES)))
    return {(row["context"], row["strategy"]): row for row in rows}


def _seconds(row):
    return paper.DECODE_TOKENS * row["step_us"] / 1e6


def _calibrated(entry, rows, strategy):
    """The paper's seconds as a + k x (simulated seconds of attention): fitted on two contexts, tried on the others."""
    contexts = list(entry["seconds"])
    column = 0 if strategy == "tree" else 1
    attention = {c: paper.DECODE_TOKENS * (rows[c, strategy]["kv_us"] + rows[c, strategy]["merge_us"]) / 1e6
                 for c in contexts}
    fitted = contexts[0], contexts[2]
    (overhead, factor), _ = fit.least_squares([[1, attention[c]] for c in fitted],
                                              [entry["seconds"][c][column] for c in fitted])
    lines = []
    for context in contexts:
        said, predicted = entry["seconds"][context][column], overhead + factor * attention[context]
        use = "fitted" if context in fitted else f"tried: {100 * (predicted / said - 1):+.0f} %"
        lines.append([f"{entry['title']}, {strategy}", text.tokens(context), f"{said:.2f}", f"{predicted:.2f}", use,
                      f"{overhead / paper.DECODE_TOKENS * 1e3:.0f} ms + {factor:.0f} x attention"])
    return lines


def _panel(entry, rows):
    contexts = list(entry["seconds"])
    lines = {name: [(c, _seconds(rows[c, name])) for c in contexts] for name in _STRATEGIES}
    for column, name in enumerate(("tree", "ring")):
        lines[f"{name}, paper"] = [(c, entry["seconds"][c][column]) for c in contexts]
    return {"title": entry["title"], "x_ticks": [contexts[0], contexts[-1]], "lines": lines}


def section(program, figures):
    results = [_simulate(program, entry) for entry in paper.TABLES]
    groups = sorted({row["groups"] for rows in results for row in rows.values()})
    parts = [f"""## Decoding 10 tokens with whole models (simulated)

Each step reads the weights, the keys and values and merges once per layer; gathers of the divided products and the front's
command to all ranks are in the time. The GPUs are in the [groups](planning.md#groups) that the planner chooses, here
{"one of all GPUs" if groups == [1] else f"{groups[0]} to {groups[-1]} of them"}. Contexts (the paper's 32k is taken for 32,000) and
models are the paper's, weights and KV are f16, batch 1. The paper's columns are its own measurements.

![time of ten tokens over context, simulated and the paper's](figures/models.svg)
"""]
    panels = []
    calibration = []
    for entry, rows in zip(paper.TABLES, results, strict=True):
        panels.append(_panel(entry, rows))
        lines = []
        for context, (tree, ring) in entry["seconds"].items():
            mine = {name: _seconds(rows[context, name]) for name in _STRATEGIES}
            lines.append([text.tokens(context), *(text.seconds(mine[name]) for name in _STRATEGIES),
                          f"{mine['ring'] / mine['tree']:.1f}x", f"{tree:.2f} s", f"{ring:.2f} s", f"{ring / tree:.1f}x"])
        parts.append(f"**{entry['title']}**\n")
        parts.append(text.table(["context", *(f"{name}, simulated" for name in _STRATEGIES), "ring / tree",
                                 "tree, paper", "ring, paper", "ring / tree, paper"], lines) + "\n")
        calibration += _calibrated(entry, rows, "tree") + _calibrated(entry, rows, "ring")
    parts.append(f"""**Why the paper's seconds are so much larger.** An idealised machine decodes ten tokens of an 8B model in tens of
milliseconds: {10 * 16 / 8 / 3.35:.0f} ms are the weights at 8 x 3.35 TB/s. The paper measured 600 ms at 32k; the rest must be
software. What is known of the code that was published with it: it times the first, compiling step; it expands the KV heads to
all query heads (4 times the bytes for these models) before they are sent; it rotates the whole cached K again in every step;
and it keeps the new keys and values on the last rank. How much each of these takes is not known here.

What one number for a fixed cost per token and one factor on the attention can explain of that is below: both are fitted on the
first and third context of each column and **tried** on the second and fourth. Where the trial is far off, the paper's own
column does not grow as any sum of a constant and a linear part does (tree on 8 H100 takes 2.68 s at 128k and 2.89 s at 256k);
a constant below zero says that a column grows faster than its context.
Nothing else in this document uses these fits.
""")
    figures.write("models.svg", chart.lines(
        "Decoding 10 tokens", "Simulated, and as the paper measured it (dotted, hollow marks)", panels, "context (tokens)",
        "time of 10 tokens", x_text=text.tokens, y_text=text.seconds))
    parts.append(text.table(["paper's column", "context", "paper (s)", "calibrated (s)", "use", "fit per token"],
                            calibration) + "\n")
    return "\n".join(parts)

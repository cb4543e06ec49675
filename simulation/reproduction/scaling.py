"""Strong and weak scaling to 1024 ranks, and where each schedule wins."""

import math
import pathlib
import tempfile

import chart
import fit
import text

_RANKS = [2 << i for i in range(10)]  # 2 to 1024
_TOKENS_PER_RANK = 8192
_STRONG_CONTEXT = 5_120_000
_STRONG_RANKS = [ranks for ranks in _RANKS if ranks >= 8]  # with fewer, ring's shards are tens of thousands of pages
# A simulated step has ranks x messages per rank messages: ring's and direct's grow with the square of the ranks.
_MOST_RANKS = {"ring": 128, "direct": 256}
_TICKS = [2, 16, 128, 1024]
_STRATEGIES = ["tree", "direct", "paper", "ring"]


def _strategies_of(ranks):
    return [name for name in _STRATEGIES if ranks <= _MOST_RANKS.get(name, ranks)]


def _simulate(program, name, all_ranks, context_of):
    def run():
        rows = []
        for ranks in all_ranks:
            rows += program.rows("simulate", "--platform", "dgx-h100", "--ranks", ranks, "--contexts", context_of(ranks),
                                 "--strategies", ",".join(_strategies_of(ranks)), "--shape", "16x128")
        return rows

    found = {}
    for row in program.kept(name, run):
        found.setdefault(row["strategy"], []).append((row["ranks"], row["step_us"]))
    return found


def _curve(line, value):
    """A fitted line, over the ranks of the one it was fitted to, where it is above nothing."""
    return [(ranks, value(ranks)) for ranks, _ in line if value(ranks) > 0]


def _fits(weak, strong):
    """Rows of the table, and the fitted lines of both panels."""
    lines, fitted_weak, fitted_strong = [], {}, {}
    log_terms = [[1, math.log2(ranks)] for ranks, _ in weak["tree"]]
    (constant, per_doubling), quality = fit.least_squares(log_terms, [time for _, time in weak["tree"]])
    lines.append(["weak, tree", f"{constant:.1f} + {per_doubling:.2f} log2 p µs", f"{quality:.4f}"])
    fitted_weak["tree, fit"] = _curve(weak["tree"], lambda p, a=constant, b=per_doubling: a + b * math.log2(p))
    (constant, per_rank), quality = fit.least_squares([[1, ranks] for ranks, _ in weak["ring"]],
                                                      [time for _, time in weak["ring"]])
    lines.append(["weak, ring", f"{constant:.1f} + {per_rank:.1f} p µs", f"{quality:.4f}"])
    fitted_weak["ring, fit"] = _curve(weak["ring"], lambda p, a=constant, b=per_rank: a + b * p)
    # Beyond one node: where ring first leaves it, its hops become nine times slower.
    for name in ("tree", "ring"):
        line = [(ranks, time) for ranks, time in weak[name] if ranks >= 16]
        (_, exponent), quality = fit.least_squares([[1, math.log(ranks)] for ranks, _ in line],
                                                   [math.log(time) for _, time in line])
        lines.append([f"weak, {name}: exponent from 16 ranks on", f"time ~ p^{exponent:.2f}", f"{quality:.4f}"])
    terms = [[1e3 / ranks, math.log2(ranks), 1] for ranks, _ in strong["tree"]]
    (work, per_doubling, constant), quality = fit.least_squares(terms, [time for _, time in strong["tree"]])
    lines.append(["strong, tree", f"{work * 1e3:.0f} / p + {per_doubling:.2f} log2 p {constant:+.1f} µs",
                  f"{quality:.4f}"])
    fitted_strong["tree, fit"] = _curve(
        strong["tree"], lambda p, a=work * 1e3, b=per_doubling, c=constant: a / p + b * math.log2(p) + c)
    return lines, fitted_weak, fitted_strong


def _map(program, figures):
    def run():
        maps = {}
        for platform, ranks, batches in (("dgx-h100", "2,3,4,6,7,8,9,12,13,16,17,24,32,33,48,64,96,128", "1..64"),
                                        ("cpu-10g", "2,3,4,5,6,8,11,13,16,24,32,48,64", "1..256")):
            with tempfile.NamedTemporaryFile(suffix=".svg") as plot:
                rows = program.rows("simulate", "--map", "--platform", platform, "--ranks", ranks, "--batches", batches,
                                    "--plot", plot.name)
                maps[platform] = {"rows": rows, "figure": pathlib.Path(plot.name).read_text(encoding="utf-8")}
        return maps

    maps = program.kept("map", run)
    for platform, each in maps.items():
        figures.write(f"map-{platform}.svg", each["figure"])
    return {platform: each["rows"] for platform, each in maps.items()}


def section(program, figures):
    weak = _simulate(program, "weak", _RANKS, lambda ranks: ranks * _TOKENS_PER_RANK)
    strong = _simulate(program, "strong", _STRONG_RANKS, lambda _: _STRONG_CONTEXT)
    fits, fitted_weak, fitted_strong = _fits(weak, strong)
    figures.write("scaling.svg", chart.lines(
        "Scaling of one attention block on H100, simulated", "16 heads x 128, f16, one token; dotted: the fits below",
        [{"title": f"weak: {text.tokens(_TOKENS_PER_RANK)} tokens per GPU", "x_ticks": _TICKS, "lines": {**weak, **fitted_weak}},
         {"title": f"strong: {text.tokens(_STRONG_CONTEXT)} tokens in all",
          "x_ticks": [_STRONG_RANKS[0], *_TICKS[2:]], "lines": {**strong, **fitted_strong}}],
        "GPUs", "time of a step", y_text=lambda value: text.seconds(value / 1e6)))
    maps = _map(program, figures)
    worst = {platform: max(row["chosen_over_best"] for row in rows) for platform, rows in maps.items()}
    worst_text = ", ".join(f"{ratio:.3f} on `{platform}`" for platform, ratio in worst.items())
    counts = {}
    for platform, rows in maps.items():
        for row in rows:
            counts.setdefault(platform, {}).setdefault(row["winner"], 0)
            counts[platform][row["winner"]] += 1
    wins = "; ".join(f"`{platform}`: " + ", ".join(f"{name} {count}" for name, count in sorted(
        found.items(), key=lambda each: -each[1])) for platform, found in counts.items())
    return f"""## Scaling to 1024 ranks (simulated)

16 heads x 128 on `dgx-h100`, one token. Weak scaling: {text.tokens(_TOKENS_PER_RANK)} tokens for every GPU. Strong scaling:
{text.tokens(_STRONG_CONTEXT)} tokens in all. (Ring to {_MOST_RANKS["ring"]} ranks and direct to {_MOST_RANKS["direct"]}: their
simulations grow with the square of the ranks.)

![time over ranks, weak and strong](figures/scaling.svg)

The paper's theorem: N items on p processors are reduced in O(N/p + log p).

{text.table(["run", "fit", "R2"], fits)}

Tree grows by a constant for every doubling of the ranks, ring with their number.

**Which schedule wins where.** Every schedule that the planner may choose was simulated for each number of ranks and each batch
(16 heads x 128: a state is 8.3 kB per sequence); a square has the colour of the fastest, and a mark where the planner chose
another.

![fastest schedule by ranks and message size, H100](figures/map-dgx-h100.svg)
![fastest schedule by ranks and message size, 10 Gbit/s Ethernet](figures/map-cpu-10g.svg)

Squares won: {wins}. The planner's choice takes at the worst {worst_text} of the best schedule's time.
"""

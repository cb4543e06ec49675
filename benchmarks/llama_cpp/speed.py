"""Speed row by row, interleaved: at each depth the two programs take turns, so that whatever else the machine does meets
both. llama.cpp is driven as llama-bench does it (tokens at random, chunks of 512, logits of each generated token) from this
process; what Python adds to a token is measured and reported.
"""

import os
import random
import statistics
import time

from oracle import Oracle

PROMPT, GENERATE = 512, 64
# Depth -> whether prompts are measured there too.
DEPTHS = {0: True, 2048: False, 8192: True}


def measure(pando, model, threads, rounds, depths=None):
    rows = []
    for depth, with_prompt in DEPTHS.items():
        if depths is None or depth in depths:
            rows += _measure_depth(pando, model, threads, rounds, depth, with_prompt)
    return rows


def _measure_depth(pando, model, threads, rounds, depth, with_prompt):
    """Rows of tokens per second at one depth."""
    names = ["tg", "pp"] if with_prompt else ["tg"]
    samples = {name: {"pando": [], "flash_off": [], "flash_on": []} for name in names}
    context = depth + PROMPT + GENERATE
    with Oracle(model, context=context, threads=threads) as off, \
            Oracle(model, context=context, threads=threads, flash_attention=True) as on:
        source = random.Random(depth)
        tokens = [source.randrange(off.vocabulary_size) for _ in range(depth + PROMPT)]
        for oracle in (off, on):
            oracle.prefill(tokens[:depth])
            oracle.time_decode(tokens[:4], depth)
        load_before = os.getloadavg()[0]
        for turn in range(rounds):
            sides = [("pando", None), ("flash_off", off), ("flash_on", on)]
            for side, oracle in sides[turn % 3:] + sides[:turn % 3]:
                for name, speed in _take_turn(pando, oracle, tokens, depth, threads, names):
                    samples[name][side].append(speed)
    return [_row(name, depth, samples[name], load_before) for name in names]


def _take_turn(pando, oracle, tokens, depth, threads, names):
    """Yields (row, tokens per second)."""
    if oracle is None:
        for row in pando.bench(PROMPT if "pp" in names else 0, GENERATE, depth, threads, 1):
            yield ("tg" if row["n_gen"] else "pp"), row["samples_ts"][0]
        return
    yield "tg", GENERATE / oracle.time_decode(tokens[:GENERATE], depth)
    if "pp" in names:
        yield "pp", PROMPT / oracle.time_prompt(tokens[:PROMPT], depth)


def _row(name, depth, samples, load):
    test = f"{name}{GENERATE if name == 'tg' else PROMPT}" + (f" @ d{depth}" if depth else "")
    medians = {side: statistics.median(values) for side, values in samples.items()}
    best = max(("flash_off", "flash_on"), key=medians.get)
    return {"test": test, "n_depth": depth, "pando": medians["pando"], "llama_cpp": medians[best], "llama_cpp_setting": best,
            "ratio": medians["pando"] / medians[best], "load_before": load,
            "spread": {side: [min(values), max(values)] for side, values in samples.items()}, "samples": samples}


def python_overhead_us():
    """What Python adds to one generated token, in microseconds: the loop of time_decode around a call that does nothing."""
    import llama_cpp as api  # pylint: disable=import-outside-toplevel
    token = (api.llama_token * 1)(0)
    count = 20000
    begin = time.perf_counter()
    for _ in range(count):
        api.llama_batch_get_one(token, 1)
        api.llama_max_devices()
    return (time.perf_counter() - begin) / count * 1e6

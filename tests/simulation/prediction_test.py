#!/usr/bin/env python3
"""Holds what platforms describe and the cost model predicts against simulations of the real code.

    prediction_test.py PANDO PANDO_SIMULATOR PLATFORMS MODEL_TRAFFIC [unittest options]
"""

import concurrent.futures
import itertools
import json
import os
import pathlib
import subprocess
import sys
import unittest

PANDO = SIMULATOR = MODEL_TRAFFIC = ""
PLATFORMS = pathlib.Path()

SCHEDULES = ["butterfly", "two-level", "direct", "reduce-scatter", "allreduce"]


def slots_for(ranks):
    slots = 64
    while slots < ranks:
        slots *= 2
    return slots


def simulate(platform, ranks, **settings):
    """One decode step; by default of one attention block with 32 heads of 128, with a chunk in every slot."""
    job = {"platform": json.loads((PLATFORMS / f"{platform}.json").read_text(encoding="utf-8")), "num_ranks": ranks,
           "num_heads": 32, "num_kv_heads": 1, "head_dim": 128, "kv_type": "f16", "context": 64 * slots_for(ranks),
           "batch": 1, "num_slots": slots_for(ranks), "strategy": "tree", "ping_pong_bytes": [], **settings}
    run = subprocess.run([SIMULATOR], input=json.dumps(job), capture_output=True, text=True, timeout=300, check=False)
    if run.returncode != 0:
        raise RuntimeError(f"{platform}, {ranks} ranks, {settings}: {run.stderr}")
    return json.loads(run.stdout)


def simulate_all(points):
    """The results by point: (platform, ranks, settings as a tuple of pairs)."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        futures = {point: pool.submit(simulate, point[0], point[1], **dict(point[2])) for point in points}
        return {point: future.result() for point, future in futures.items()}


class PredictionTest(unittest.TestCase):

    def test_a_message_takes_what_the_platform_says(self):
        sizes = [0, 1000, 100_000, 10_000_000]
        for path in sorted(PLATFORMS.glob("*.json")):
            platform = json.loads(path.read_text(encoding="utf-8"))
            if "schema" in path.name:
                continue
            last_ranks = {"within_node": platform["ranks_per_node"], "between_nodes": platform["ranks_per_node"] + 1}
            for level, ranks in last_ranks.items():
                if ranks == 1 or level not in platform:
                    continue
                with self.subTest(platform=path.stem, level=level):
                    link = platform[level]
                    measured = simulate(path.stem, ranks, ping_pong_bytes=sizes)["ping_pong_seconds"]
                    described = [link["latency_seconds"] + size / link["bytes_per_second"] for size in sizes]
                    envelope = 32 / link["bytes_per_second"]  # of a message, in SimGrid
                    for seconds, expected in zip(measured, described, strict=True):
                        self.assertAlmostEqual(seconds, expected, delta=1e-3 * expected + envelope)

    def test_the_chosen_schedule_is_about_the_fastest(self):
        # Powers of two and others, a node and several, nodes used in full and in part, one row and many.
        places = [("dgx-h100", ranks) for ranks in (2, 3, 5, 6, 8, 9, 12, 13, 15, 16, 17, 24, 33)]
        places += [("cpu-10g", ranks) for ranks in (2, 5, 8, 13, 32)]
        places += [("cloud-regions", 12), ("mi300x", 8), ("rtx-4090", 2), ("cpu-1g", 8), ("cpu-100g", 8)]
        points = [(platform, ranks, (("num_heads", heads), ("strategy", strategy)))
                  for (platform, ranks), heads, strategy in itertools.product(places, (1, 64, 512), ["tree", *SCHEDULES])]
        results = simulate_all(points)

        def merge_seconds(platform, ranks, heads, strategy):
            result = results[(platform, ranks, (("num_heads", heads), ("strategy", strategy)))]
            return result["step_seconds"] - result["kv_seconds"]

        chosen = set()
        for (platform, ranks), heads in itertools.product(places, (1, 64, 512)):
            seconds = {schedule: merge_seconds(platform, ranks, heads, schedule) for schedule in SCHEDULES}
            best = min(seconds, key=seconds.get)
            with self.subTest(platform=platform, ranks=ranks, heads=heads, best=best):
                self.assertLessEqual(merge_seconds(platform, ranks, heads, "tree"), 1.1 * seconds[best])
            chosen.add(results[(platform, ranks, (("num_heads", heads), ("strategy", "tree")))]["schedule"])
        self.assertGreaterEqual(len(chosen), 3, "a map on which the choice makes no difference proves nothing")

    def test_the_chosen_schedule_is_about_the_fastest_on_coarse_maps(self):
        for platform, ranks, batches in (("dgx-h100", "2,8,9,17,64", "1,64"), ("cpu-10g", "2,5,13,64", "1,256")):
            run = subprocess.run([PANDO, "simulate", "--map", "--platform", platform, "--ranks", ranks, "--batches", batches, "-o",
                                  "json"], capture_output=True, text=True, timeout=300, check=True)
            rows = json.loads(run.stdout)
            self.assertEqual(len(rows), len(ranks.split(",")) * len(batches.split(",")))
            for row in rows:
                with self.subTest(platform=platform, ranks=row["ranks"], batch=row["batch"], winner=row["winner"]):
                    self.assertLessEqual(row["chosen_over_best"], 1.1)

    def test_the_chosen_schedule_is_about_the_fastest_of_a_thousand_ranks(self):
        # Direct would send a million messages, an allreduce takes gigabytes.
        settings = {strategy: (("num_heads", 16), ("strategy", strategy))
                    for strategy in ("tree", "butterfly", "two-level", "reduce-scatter")}
        results = simulate_all([("dgx-h100", 1024, each) for each in settings.values()])
        seconds = {strategy: results[("dgx-h100", 1024, each)]["step_seconds"] for strategy, each in settings.items()}
        self.assertLessEqual(seconds["tree"], 1.1 * min(seconds.values()))

    def assert_sends_the_same(self, ranks, batch, strategy, groups, down, before, tokens, divides_tokens):
        """A step of a small model: simulated, and by a real engine. Returns what is simulated."""
        real = subprocess.run([MODEL_TRAFFIC, str(ranks), str(batch), strategy, str(groups), down, str(before),
                               f"{'+' if divides_tokens else ''}{tokens}"],
                              capture_output=True, text=True, timeout=60, check=True)
        counts = [tuple(map(int, line.split())) for line in real.stdout.splitlines()]
        layers = {"num_layers": 2, "hidden_size": 128, "ffn_size": 1024, "vocab_size": 512, "weight_type": "f32",
                  "tokens_per_sequence": tokens, "num_groups": groups, "divides_tokens": divides_tokens, "down": down}
        simulated = simulate("cpu-10g", ranks, layers=layers, num_heads=8, num_kv_heads=2, head_dim=16,
                             context=before + 2 * tokens, batch=batch, strategy=strategy)
        self.assertEqual(len(counts), ranks)
        self.assertEqual(simulated["messages_per_rank"], max(messages for messages, _ in counts))
        self.assertEqual(simulated["bytes_per_rank"], max(size for _, size in counts))
        return simulated

    def test_a_model_sends_what_it_sends_for_real(self):
        divisions = [(1, "rows"), (1, "one-hop"), (2, "two-hops"), (2, "rows"), (3, "one-hop")]
        for ranks, batch, strategy in itertools.product((2, 3, 4, 9), (1, 17), ("butterfly", "direct", "ring")):
            for groups, down in divisions:
                if groups > ranks:
                    continue
                with self.subTest(ranks=ranks, batch=batch, strategy=strategy, groups=groups, down=down):
                    self.assert_sends_the_same(ranks, batch, strategy, groups, down, before=5, tokens=1, divides_tokens=False)

    def test_a_prompt_sends_what_it_sends_for_real(self):
        schedules = set()
        # Many queries with few keys: these travel. The other way round: queries do.
        for ranks, groups, down in ((2, 2, "rows"), (3, 3, "rows"), (4, 2, "two-hops"), (9, 2, "one-hop"), (8, 8, "rows")):
            for batch, before, tokens in ((1, 5, 20), (1, 200, 8), (3, 200, 9)):
                # A schedule that is asked for by name merges on all ranks: tokens are not divided.
                for strategy, divides_tokens in (("tree", True), ("butterfly", False)):
                    with self.subTest(ranks=ranks, groups=groups, batch=batch, tokens=tokens, divides_tokens=divides_tokens):
                        simulated = self.assert_sends_the_same(ranks, batch, strategy, groups, down, before, tokens,
                                                               divides_tokens)
                        schedules.add(simulated["schedule"])
        self.assertEqual(schedules, {"pass-q", "pass-kv", "butterfly"})

    def rows_of(self, *args):
        run = subprocess.run([PANDO, *map(str, args), "-o", "json"], capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        return json.loads(run.stdout)

    def plan(self, platform, ranks, model, context, *args):
        return self.rows_of("plan", "-m", model, "-c", context, "--platform", platform, "--ranks", ranks, *args)[0]

    def step(self, platform, ranks, model, context, *args):
        return self.rows_of("simulate", "--platform", platform, "--ranks", ranks, "--model", model, "--contexts", context,
                            "--strategies", "tree", *args)[0]

    def test_a_plan_is_what_is_simulated(self):
        for platform, ranks, *groups in (("dgx-h100", 1), ("dgx-h100", 8), ("dgx-h100", 16), ("dgx-h100", 16, "--groups", 1),
                                         ("cpu-10g", 2), ("cpu-10g", 16), ("cpu-10g", 16, "--groups", 4), ("cpu-10g", 3),
                                         ("cpu-100g", 24), ("cpu-100g", 24, "--groups", 1)):
            with self.subTest(platform=platform, ranks=ranks, groups=groups):
                simulated = self.step(platform, ranks, "smollm2-135m", "128K", *groups)
                planned = self.plan(platform, ranks, "smollm2-135m", "128K", *groups)
                self.assertEqual(planned["groups"], simulated["groups"])
                self.assertEqual(planned["schedule"], simulated["schedule"])
                for part, tolerance in (("weight", 0.03), ("kv", 0.001), ("gather", 0.15), ("merge", 0.15), ("step", 0.05)):
                    name = {"weight": "weights_ms", "step": "ms_per_token"}.get(part, f"{part}_ms")
                    milliseconds = 1e-3 * simulated[f"{part}_us"]
                    self.assertAlmostEqual(planned[name], milliseconds, delta=tolerance * milliseconds + 0.02, msg=part)

    def test_groups_make_a_token_as_fast_as_planned(self):
        # What one group takes at best: 6.12, 33.6 and 111 ms.
        for platform, weights, context, most_ms, all_ranks in (("dgx-h100", "f16", "1M", 3.8, (32, 64, 128)),
                                                               ("cpu-10g", "q4_0", "128K", 25, (32, 64)),
                                                               ("cpu-1g", "q4_0", "128K", 88, (32, 64))):
            milliseconds = []
            for ranks in all_ranks:
                with self.subTest(platform=platform, ranks=ranks):
                    simulated = self.step(platform, ranks, "llama-3.1-8b", context, "--weight-type", weights)["step_us"] / 1e3
                    planned = self.plan(platform, ranks, "llama-3.1-8b", context, "--weight-type", weights, "--prompt", 1)
                    self.assertAlmostEqual(planned["ms_per_token"], simulated, delta=0.1 * simulated)
                    milliseconds.append(simulated)
            self.assertLessEqual(min(milliseconds), most_ms)
            if platform == "dgx-h100":
                self.assertLess(milliseconds[-1], milliseconds[0])

    def test_a_prompt_is_read_as_planned(self):
        """Of 128K tokens in steps of 512: by some of its steps, between which a step's time grows as a line."""
        contexts = (512, 4096, 8192, 65536, 131072)

        def seconds(ranks, *args):
            steps = [self.step("cpu-10g", ranks, "llama-3.1-8b", context, "--weight-type", "q4_0", "--tokens", 512,
                               *args)["step_us"] / 1e6 for context in contexts]
            return sum((first + last) / 2 * (end - begin) / 512 for (begin, first), (end, last)
                       in itertools.pairwise(zip(contexts, steps))) + steps[0]

        planned = self.plan("cpu-10g", 8, "llama-3.1-8b", "128K", "--weight-type", "q4_0")
        alone = self.plan("cpu-10g", 1, "llama-3.1-8b", "128K", "--weight-type", "q4_0")
        divided = seconds(8)
        # One group, and that with `down` by columns: faster than by rows.
        one_group, one_rank = seconds(8, "--groups", 1), seconds(1)
        self.assertAlmostEqual(planned["prompt_s"], divided, delta=0.1 * divided)
        self.assertAlmostEqual(alone["prompt_s"], one_rank, delta=0.1 * one_rank)
        self.assertGreaterEqual(one_rank / divided, 4)
        self.assertGreaterEqual(one_group / divided, 2)
        self.assertGreaterEqual(planned["prompt_one_group_s"] / planned["prompt_s"], 2)


if __name__ == "__main__":
    PANDO, SIMULATOR = sys.argv[1], sys.argv[2]
    PLATFORMS, MODEL_TRAFFIC = pathlib.Path(sys.argv[3]), sys.argv[4]
    unittest.main(argv=sys.argv[:1] + sys.argv[5:])

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

    def test_a_model_sends_what_it_sends_for_real(self):
        layers = {"num_layers": 2, "hidden_size": 128, "ffn_size": 192, "vocab_size": 512, "weight_type": "f32"}
        for ranks, batch, strategy in itertools.product((2, 3, 4, 9), (1, 17), ("butterfly", "direct", "ring")):
            with self.subTest(ranks=ranks, batch=batch, strategy=strategy):
                real = subprocess.run([MODEL_TRAFFIC, str(ranks), str(batch), strategy], capture_output=True, text=True,
                                      timeout=60, check=True)
                counts = [tuple(map(int, line.split())) for line in real.stdout.splitlines()]
                simulated = simulate("cpu-10g", ranks, layers=layers, num_heads=8, num_kv_heads=2, head_dim=16, context=6,
                                     batch=batch, strategy=strategy)
                self.assertEqual(len(counts), ranks)
                self.assertEqual(simulated["messages_per_rank"], max(messages for messages, _ in counts))
                self.assertEqual(simulated["bytes_per_rank"], max(size for _, size in counts))

    def test_a_plan_is_what_is_simulated(self):
        layers = {"num_layers": 30, "hidden_size": 576, "ffn_size": 1536, "vocab_size": 49152, "weight_type": "f16"}
        settings = (("num_heads", 9), ("num_kv_heads", 3), ("head_dim", 64), ("context", 131072))
        for platform, ranks in (("dgx-h100", 1), ("dgx-h100", 8), ("dgx-h100", 16), ("cpu-10g", 2), ("cpu-10g", 16),
                                ("cpu-10g", 3), ("cpu-100g", 24)):
            with self.subTest(platform=platform, ranks=ranks):
                simulated = simulate(platform, ranks, layers=layers, **dict(settings))
                run = subprocess.run([PANDO, "plan", "-m", "smollm2-135m", "-c", "128K", "--platform", platform, "--ranks",
                                      str(ranks), "-o", "json"], capture_output=True, text=True, timeout=60, check=True)
                planned = json.loads(run.stdout)[0]
                self.assertEqual(planned["schedule"], simulated["schedule"])
                for part, tolerance in (("weight", 0.02), ("kv", 0.001), ("gather", 0.1), ("merge", 0.15), ("step", 0.05)):
                    name = {"weight": "weights_ms", "step": "ms_per_token"}.get(part, f"{part}_ms")
                    milliseconds = 1e3 * simulated[f"{part}_seconds"]
                    self.assertAlmostEqual(planned[name], milliseconds, delta=tolerance * milliseconds + 0.002, msg=part)


if __name__ == "__main__":
    PANDO, SIMULATOR = sys.argv[1], sys.argv[2]
    PLATFORMS, MODEL_TRAFFIC = pathlib.Path(sys.argv[3]), sys.argv[4]
    unittest.main(argv=sys.argv[:1] + sys.argv[5:])

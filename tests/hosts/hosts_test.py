"""What must be true across hosts. Started by `run`, which fills in SUITE, MPIRUN and HOSTS."""

import contextlib
import functools
import pathlib
import re
import shutil
import subprocess
import sys
import time
import unittest

import network

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "mpi"))
import mpirun  # pylint: disable=wrong-import-position

SUITE = ""
MPIRUN = ""
HOSTS = None
NUM_HOSTS = 4
RANKS_PER_HOST = (1, 2)

# `hosts_suite steps`, one token: 32 heads of 128 floats (docs/schedules.md).
FOREST_BYTES = 32 * (128 + 2) * 4
# Keys and values of a token: 8 KV heads of 128, f16.
TOKEN_BYTES = 2 * 8 * 128 * 2
CONTEXT = 4096
TOLERANCE = 0.03

LOST = 1
TIMEOUT_S = 3
# How long a busy machine may take for what should be a moment. No test passes or fails by less.
PATIENCE_S = 15
# Each rank writes into a file of its own, and its exit code beside it.
WRAPPER = ('rank=$OMPI_COMM_WORLD_RANK; "${@:2}" >"$1/output.$rank" 2>&1; echo $? >"$1/new.$rank"; '
           'mv "$1/new.$rank" "$1/code.$rank"')


def check_available(launcher):
    if not shutil.which(launcher):
        raise network.Unavailable(f"there is no {launcher} (Debian: openmpi-bin)")
    if not mpirun.is_openmpi(launcher):
        raise network.Unavailable(f"{launcher} is not OpenMPI's, and others are started across hosts in other ways")


def facts(output):
    """The suite's lines as {first word: rest}; all bits as {(type, state, strategy): fingerprint}."""
    lines = [line.split() for line in output.splitlines()]
    found = {line[0]: " ".join(line[1:]) for line in lines if line and line[0] != "bits"}
    found["bits"] = {tuple(line[1:4]): line[4] for line in lines if line and line[0] == "bits"}
    return found


def run_alone(*arguments):
    return facts(subprocess.run([SUITE, *arguments], capture_output=True, text=True, check=True).stdout)


def run_on_hosts(ranks_per_host, *arguments):
    """Every host must be a node: otherwise ranks of two hosts would meet in shared memory."""
    found = facts(HOSTS.run(mpirun_line(ranks_per_host) + [SUITE, *arguments]))
    expected = " ".join(str(host) for host in range(NUM_HOSTS) for _ in range(ranks_per_host))
    if found["nodes"] != expected:
        raise AssertionError(f"the ranks are on nodes {found['nodes']} and should be on {expected}")
    return found


def mpirun_line(ranks_per_host):
    return [MPIRUN, "-n", str(NUM_HOSTS * ranks_per_host), "-N", str(ranks_per_host)]


def sent_in_run(ranks_per_host, strategy, num_steps):
    """What each host sends from mpirun's start to its end."""
    before = [HOSTS.counters(host) for host in range(NUM_HOSTS)]
    run_on_hosts(ranks_per_host, "steps", "--strategy", strategy, "--context", str(CONTEXT), "--steps", str(num_steps))
    return [HOSTS.counters(host) - before[host] for host in range(NUM_HOSTS)]


@functools.cache
def sent_in_empty_run(ranks_per_host):
    return sent_in_run(ranks_per_host, "butterfly", 0)


def sent_in_steps(ranks_per_host, strategy, num_steps):
    """What each host sends for the steps alone: starting and ending cancel out."""
    whole = sent_in_run(ranks_per_host, strategy, num_steps)
    return [each - empty for each, empty in zip(whole, sent_in_empty_run(ranks_per_host))]


def say(text):
    """Where unittest prints, between the name of the test and its result."""
    print(f"\n  {text}", end=" ", file=sys.stderr, flush=True)


class HostsTest(unittest.TestCase):

    def tearDown(self):
        HOSTS.end_processes()

    # ---- Bits

    def test_bits_are_those_of_one_rank(self):
        alone_prefix = HOSTS.folder / "alone"
        alone = run_alone("bits", "--save", str(alone_prefix))["bits"]
        expected = {kv_type: fingerprint for (kv_type, _, _), fingerprint in alone.items()}
        self.assertEqual(len(set(expected.values())), 4, "fingerprints do not tell the KV types apart")
        self.expect_bits(alone, expected, states=2)
        for ranks_per_host in RANKS_PER_HOST:
            prefix = HOSTS.folder / f"hosts{ranks_per_host}"
            across = run_on_hosts(ranks_per_host, "bits", "--load", str(alone_prefix), "--save", str(prefix))["bits"]
            self.expect_bits(across, expected, states=3)
            back = run_alone("bits", "--load", str(prefix))["bits"]
            self.expect_bits(back, expected, states=3)

    def expect_bits(self, bits, expected, states):
        self.assertEqual(len(bits), 4 * states * 7, "4 KV types, 7 strategies")
        for case, fingerprint in bits.items():
            self.assertEqual(fingerprint, expected[case[0]], case)

    # ---- Bytes on the wires

    def expect_sent(self, ranks_per_host, strategy, num_steps, expected):
        """Every host sends `expected` bytes per step."""
        dropped = HOSTS.num_dropped()
        sent = sent_in_steps(ranks_per_host, strategy, num_steps)
        self.assertEqual(HOSTS.num_dropped(), dropped, "packets were lost and counted twice: make the queues longer")
        ratios = [each.payload_bytes / (expected * num_steps) for each in sent]
        name = f"{strategy} on {NUM_HOSTS} x {ranks_per_host}"
        say(f"{name}: a step sends {expected} bytes out of a host; on the wires "
            + " ".join(f"{100 * (ratio - 1):+.2f} %" for ratio in ratios))
        for host, ratio in enumerate(ratios):
            self.assertLess(abs(ratio - 1), TOLERANCE, f"{name}, host {host}: {sent[host]} in {num_steps} steps")
        return sum(each.payload_bytes for each in sent) / num_steps

    def test_butterfly_and_two_level(self):
        """docs/schedules.md: n F log2 N and F log2 N bytes out of a node."""
        for ranks_per_host in RANKS_PER_HOST:
            butterfly = self.expect_sent(ranks_per_host, "butterfly", 100, ranks_per_host * FOREST_BYTES * 2)
            two_level = self.expect_sent(ranks_per_host, "two-level", 100, FOREST_BYTES * 2)
            self.assertAlmostEqual(two_level / butterfly, 1 / ranks_per_host, delta=TOLERANCE / ranks_per_host)

    def test_ring(self):
        """Each rank passes on all shards but one; one rank of a host has its neighbour on another host."""
        for ranks_per_host in RANKS_PER_HOST:
            num_ranks = NUM_HOSTS * ranks_per_host
            self.expect_sent(ranks_per_host, "ring", 2, (num_ranks - 1) * CONTEXT * TOKEN_BYTES // num_ranks)

    # ---- Time: said, and not judged

    def test_time_of_tree_and_ring(self):
        """A tree step is at least 100 times faster, where the machine has nothing else to do."""
        steps = {"tree": "21", "ring": "3"}
        found = {strategy: run_on_hosts(1, "steps", "--strategy", strategy, "--context", "65536", "--steps", count)
                 for strategy, count in steps.items()}
        for name in ("median", "fastest"):
            tree_ms, ring_ms = (float(found[strategy][f"{name}_us"]) / 1000 for strategy in steps)
            say(f"64K tokens on {NUM_HOSTS} hosts, {name} step: tree {tree_ms:.2f} ms, ring {ring_ms:.2f} ms: "
                f"{ring_ms / tree_ms:.0f} x")
        self.assertEqual(found["ring"]["schedule"], "ring")

    # ---- A host that is lost

    def test_cable_is_pulled(self):
        """All other ranks say whom they waited for, and end with 1."""
        line = mpirun_line(1) + ["--enable-recovery", "--mca", "orte_abort_on_non_zero_status", "0"]
        line += ["bash", "-c", WRAPPER, "wrapper", str(HOSTS.folder), SUITE, "steps", "--strategy", "butterfly",
                 "--steps", "1000000", "--timeout-ms", str(TIMEOUT_S * 1000)]
        survivors = [rank for rank in range(NUM_HOSTS) if rank != LOST]
        with start_on_hosts(line):
            self.assertTrue(wait_until(lambda: "running\n" in read("output.0")), "the ranks do not run")
            time.sleep(0.2)
            HOSTS.set_cable(LOST, plugged_in=False)
            since = time.monotonic()
            ended = wait_until(lambda: all(read(f"code.{rank}") for rank in survivors))
            took_s = time.monotonic() - since
            said = "\n".join(f"{rank}: {read(f'code.{rank}')}: {read(f'output.{rank}')}" for rank in survivors)
            self.assertTrue(ended, f"not all ended:\n{said}")
        say(f"the others ended {took_s:.1f} s after the cable of host {LOST} was pulled")
        for rank in survivors:
            self.assertEqual(read(f"code.{rank}"), "1\n", said)
            sentence = rf"^rank {rank} waited {TIMEOUT_S} s for ([^:]+), in vain"
            match = re.search(sentence, read(f"output.{rank}"), re.MULTILINE)
            self.assertTrue(match, said)
            self.assertIn(str(LOST), re.findall(r"\d+", match[1]), said)


@contextlib.contextmanager
def start_on_hosts(line):
    launcher = subprocess.Popen(HOSTS.command(line), env=HOSTS.environment(), stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        HOSTS.end_processes()
        HOSTS.set_cable(LOST, plugged_in=True)
        launcher.wait()


def read(name):
    file = HOSTS.folder / name
    return file.read_text() if file.exists() else ""


def wait_until(condition):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True

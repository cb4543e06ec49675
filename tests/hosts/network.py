"""Hosts on one machine: network namespaces with a link of 1 Gbit/s each to a common switch, and OpenMPI across them.

    with network.Network(num_hosts=4) as hosts:
        hosts.run(["mpirun", "-n", "8", "-N", "2", "hostname"])        # on host0, two ranks on each host
        hosts.counters(1).payload_bytes                                # what host1 has sent

The switch is a bridge in a namespace of its own, so nothing is added to the machine's own network:

    pando-hosts-PID-host0   eth0 10.77.0.1 --- port0 \\
    pando-hosts-PID-host1   eth0 10.77.0.2 --- port1  bridge    pando-hosts-PID-switch
    ...                                             /

Leaving the `with` ends all processes in these namespaces and removes them, and with them the links. What a run that was
killed left behind is removed by the next one: names carry the id of the process that made them.
"""

import collections
import contextlib
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import time

_PREFIX = "pando-hosts-"
_ENTER = pathlib.Path(__file__).resolve().parent / "enter"
_TOOLS = {"ip": "iproute2", "tc": "iproute2", "unshare": "util-linux", "mount": "mount", "hostname": "hostname"}

# Bursts must be above what TCP hands over at once (64 KB), or the queue cuts it up first; the queue is longer than all
# that the senders' windows hold, so that no packet is lost and sent again.
_SHAPER = ["tbf", "rate", "1gbit", "burst", "128kb", "limit", "32mb"]

# Ethernet 14, IPv4 20, TCP 20 and its timestamps 12. A packet here is what the kernel hands to the device: one segment,
# or several that a real card would cut (GSO); its bytes hold the headers once either way.
_HEADER_BYTES = 14 + 20 + 20 + 12

# How the kernel and its tools say that something is not allowed or not built in. All else is a failure.
_REFUSALS = "not permitted|permission denied|not supported|unknown device type|kind is unknown|read-only file system"


class Unavailable(Exception):
    """Why this machine does not do namespaces."""


class Counters(collections.namedtuple("Counters", ["bytes", "packets"])):
    """What a host has sent: all bytes of its packets, with headers, and the packets, acknowledgements among them."""

    def __sub__(self, other):
        return Counters(self.bytes - other.bytes, self.packets - other.packets)

    @property
    def payload_bytes(self):
        """What TCP carried. Exact: acknowledgements are packets of headers alone."""
        return self.bytes - self.packets * _HEADER_BYTES


def _call(*command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OSError(f"{shlex.join(command)}: {done.stderr.strip() or done.returncode}")
    return done.stdout


def check_available():
    """Raises Unavailable where namespaces, links or their shaping cannot be had."""
    if os.geteuid() != 0:
        raise Unavailable("network namespaces need root")
    for tool, package in _TOOLS.items():
        if not shutil.which(tool):
            raise Unavailable(f"there is no {tool} (Debian: {package})")
    try:
        with Network(num_hosts=1) as probe:
            probe.run(["true"])
    except OSError as error:
        if not re.search(_REFUSALS, str(error), re.IGNORECASE):
            raise
        raise Unavailable(str(error)) from error


def _namespaces():
    """(name, id of the process that made it) of all namespaces that a Network made."""
    for line in _call("ip", "netns", "list").splitlines():
        match = re.match(rf"({_PREFIX}(\d+)-\S+)", line)
        if match:
            yield match[1], int(match[2])


def _is_running(process):
    """False for what only waits to be noted by its parent, too."""
    try:
        return not re.search(r"^State:\s+[ZX]", pathlib.Path(f"/proc/{process}/status").read_text(), re.MULTILINE)
    except OSError:
        return False


def _end_processes(namespaces):
    """Kills what runs in the namespaces, until nothing does."""
    ended = set()
    for _ in range(500):
        found = {int(line) for name in namespaces for line in _call("ip", "netns", "pids", name).split()}
        for process in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        ended |= found
        if not found and not any(_is_running(process) for process in ended):
            return
        time.sleep(0.02)
    raise OSError(f"of the processes {sorted(ended)} some do not end")


def _remove(namespaces, folders):
    _end_processes(namespaces)
    for name in namespaces:
        _call("ip", "netns", "delete", name)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def _is_alive(process):
    """Whether the process is there and is one of ours: ids are used again."""
    try:
        return b"hosts" in pathlib.Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False


def sweep():
    """Removes what runs that were killed have left."""
    _remove([name for name, process in _namespaces() if not _is_alive(process)],
            [folder for folder in pathlib.Path(tempfile.gettempdir()).glob(f"{_PREFIX}*")
             if not _is_alive(folder.name.removeprefix(_PREFIX))])


class Network:
    """See above."""

    def __init__(self, num_hosts, ranks_per_host=2):
        self.num_hosts = num_hosts
        self._name = f"{_PREFIX}{os.getpid()}"
        self.folder = pathlib.Path(tempfile.gettempdir()) / self._name
        self._ranks_per_host = ranks_per_host

    def __enter__(self):
        sweep()
        try:
            self._create()
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(self, *_):
        self.remove()

    def host(self, host_idx):
        """The namespace of a host."""
        return f"{self._name}-host{host_idx}"

    def _switch(self):
        return f"{self._name}-switch"

    def _create(self):
        self.folder.mkdir(mode=0o700)
        _call("ip", "netns", "add", self._switch())
        _call("ip", "-n", self._switch(), "link", "add", "bridge", "type", "bridge")
        _call("ip", "-n", self._switch(), "link", "set", "bridge", "up")
        for host_idx in range(self.num_hosts):
            self._create_host(host_idx)
        lines = [f"10.77.0.{host_idx + 1} host{host_idx}" for host_idx in range(self.num_hosts)]
        (self.folder / "hosts").write_text("\n".join(["127.0.0.1 localhost", *lines, ""]))
        slots = [f"host{host_idx} slots={self._ranks_per_host}\n" for host_idx in range(self.num_hosts)]
        (self.folder / "hostfile").write_text("".join(slots))

    def _create_host(self, host_idx):
        host, switch, port = self.host(host_idx), self._switch(), f"port{host_idx}"
        _call("ip", "netns", "add", host)
        # Nothing on the wire but what is asked for.
        _call("ip", "netns", "exec", host, "sh", "-c",
              "for each in all default; do echo 1 >/proc/sys/net/ipv6/conf/$each/disable_ipv6 || true; done")
        _call("ip", "-n", switch, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", host)
        _call("ip", "-n", switch, "link", "set", port, "master", "bridge", "up")
        _call("ip", "-n", host, "address", "add", f"10.77.0.{host_idx + 1}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            _call("ip", "-n", host, "link", "set", device, "up")
        _call("tc", "-n", switch, "qdisc", "add", "dev", port, "root", *_SHAPER)
        _call("tc", "-n", host, "qdisc", "add", "dev", "eth0", "root", *_SHAPER)

    def remove(self):
        """Ends all processes on the hosts and removes the hosts. Not to be disturbed by Ctrl-C."""
        signals = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
        before = [signal.signal(each, signal.SIG_IGN) for each in signals]
        try:
            _remove([name for name, process in _namespaces() if process == os.getpid()], [self.folder])
        finally:
            for each, handler in zip(signals, before):
                signal.signal(each, handler)

    def end_processes(self):
        """Ends all that still runs on the hosts."""
        _end_processes([self.host(host_idx) for host_idx in range(self.num_hosts)])

    def environment(self):
        """What makes a plain `mpirun` on host0 start its ranks on all hosts."""
        options = {
            "orte_default_hostfile": self.folder / "hostfile",
            "orte_tmpdir_base": self.folder,
            "plm_rsh_agent": _ENTER,
            "plm_rsh_no_tree_spawn": 1,
            "oob_tcp_if_include": "eth0",
            "btl_tcp_if_include": "eth0",
            # Shared memory inside a host, TCP between hosts.
            "pml": "ob1",
            "btl": "self,vader,tcp",
            # The hosts share the machine's cores.
            "hwloc_base_binding_policy": "none",
            "mpi_yield_when_idle": 1,
        }
        return dict(os.environ, PANDO_HOSTS_NAME=self._name, PANDO_HOSTS_FOLDER=str(self.folder),
                    OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                    **{f"OMPI_MCA_{name}": str(value) for name, value in options.items()})

    def command(self, command):
        """The command line that runs `command` on host0."""
        return [str(_ENTER), "host0", "exec " + shlex.join(command)]

    def run(self, command, timeout_s=60):
        """What `command`, on host0, prints. OSError where it fails."""
        try:
            done = subprocess.run(self.command(command), env=self.environment(), stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, timeout=timeout_s, check=False)
        except subprocess.TimeoutExpired as error:
            self.end_processes()
            raise OSError(f"{shlex.join(command)}: still running after {timeout_s} s") from error
        if done.returncode != 0:
            raise OSError(f"{shlex.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def counters(self, host_idx):
        """What the host has sent since it was made."""
        links = json.loads(_call("ip", "-n", self.host(host_idx), "-json", "-s", "link", "show", "eth0"))
        sent = links[0]["stats64"]["tx"]
        return Counters(sent["bytes"], sent["packets"])

    def num_dropped(self):
        """Packets that did not fit a queue: these are sent again, and counted again."""
        links = [(self.host(host_idx), "eth0") for host_idx in range(self.num_hosts)]
        links += [(self._switch(), f"port{host_idx}") for host_idx in range(self.num_hosts)]
        return sum(queue["drops"] for name, device in links
                   for queue in json.loads(_call("tc", "-n", name, "-json", "-s", "qdisc", "show", "dev", device)))

    def set_cable(self, host_idx, plugged_in):
        """Pulls the cable of a host out of the switch, or puts it back."""
        _call("ip", "-n", self._switch(), "link", "set", f"port{host_idx}", "up" if plugged_in else "down")


def leftovers():
    """What is there of the networks that this process made: namespaces, and processes that were started on hosts."""
    found = [name for name, process in _namespaces() if process == os.getpid()]
    mark = f"PANDO_HOSTS_NAME={_PREFIX}{os.getpid()}\0".encode()
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if mark in (folder / "environ").read_bytes():
                found.append(f"process {folder.name}: {(folder / 'cmdline').read_text()}")
        except OSError:
            continue
    return found

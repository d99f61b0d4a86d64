"""The first process of the namespaces in which real processes run. A program of its own: it imports no other module.

It takes commands as JSON over the Unix socket on its standard input, and answers each, with sockets as file
descriptors. At the end of that socket, i.e. when the sandbox has ended in whatever way, it kills everything, removes
the directory of the state and ends.
"""

import array
import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

_NEW_MOUNTS, _NEW_NAMES, _NEW_PROCESSES, _NEW_NETWORK = 0x00020000, 0x04000000, 0x20000000, 0x40000000
_DETACH = 2
_LARGEST = 1 << 20
_REST = 0.1
_BRIDGE = "pods"
_LISTEN = "0A"
_CANNOT_START = 125
_LIBC = ctypes.CDLL(None, use_errno=True)

Answer = tuple[dict[str, object], Sequence[int]]
"""What a command answers, and the file descriptors that go with it."""


class _Pod(NamedTuple):
    """The process that holds a pod's namespaces, its address, and its link to the bridge."""

    holder: int
    address: str
    link: str


class Agent:
    """Pods, containers and sockets of the namespaces."""

    def __init__(self, gateway: str) -> None:
        """`gateway` is its own address in the pods' network, with the length of the prefix."""
        self._gateway, _, self._prefix = gateway.partition("/")
        self._network = os.open("/proc/self/ns/net", os.O_RDONLY)
        self._pods: dict[str, _Pod] = {}
        """By the pod's name here."""
        self._live: dict[str, int] = {}
        self._ends: dict[int, int] = {}
        self._in_memory: dict[str, set[str]] = {}
        """The paths of volumes in memory, by the pod's name here."""
        self._made = 0
        _ip("link set lo up", f"link add {_BRIDGE} type bridge", f"addr add {gateway} dev {_BRIDGE}")
        _ip(f"link set {_BRIDGE} up")

    def pod(self, pod: str, address: str, hostname: str) -> Answer:
        """Make a pod's network and host name. Idempotent."""
        if pod not in self._pods:
            self._made += 1
            ready, go = os.pipe(), os.pipe()
            holder = os.fork()
            if not holder:
                _hold(ready[1], go[0], hostname)
            os.close(ready[1])
            os.close(go[0])
            os.read(ready[0], 1)
            os.close(ready[0])
            name = f"pod{self._made}"
            self._forget_route(address)
            _ip(f"link add {name} type veth peer name eth0 netns {holder}", f"link set {name} master {_BRIDGE} up")
            setup = (
                "link set lo up",
                f"addr add {address}/{self._prefix} dev eth0",
                "link set eth0 up",
                f"route add default via {self._gateway}",
            )
            _ip(*setup, of=holder)
            os.close(go[1])
            self._pods[pod] = _Pod(holder, address, name)
        return {}, ()

    def end_pod(self, pod: str) -> Answer:
        """Remove a pod's network: its address answers no more. Idempotent."""
        network = self._pods.pop(pod, None)
        if network is not None:
            # sockets of the gateway may outlive the holder, and the pod's network with them
            with contextlib.suppress(RuntimeError):
                _ip(f"link del {network.link}")
            _kill(network.holder, signal.SIGKILL)
        for path in self._in_memory.pop(pod, ()):
            _check(_LIBC.umount2(path.encode(), _DETACH))
        return {}, ()

    def memory(self, pod: str, path: str, size: int) -> Answer:
        """Make a directory a volume in memory until the pod's end. Idempotent."""
        paths = self._in_memory.setdefault(pod, set())
        if path not in paths:
            _check(_LIBC.mount(b"tmpfs", path.encode(), b"tmpfs", 0, f"size={size}".encode()))
            paths.add(path)
        return {}, ()

    def end(self) -> None:
        """Kill everything, wait for its end, and free the volumes in memory."""
        with contextlib.suppress(OSError):
            os.kill(-1, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while True:
                os.waitpid(-1, 0)
        for pod in list(self._in_memory):
            self.end_pod(pod)

    def start(
        self, pod: str, container: str, setup: Sequence[str], environment: Mapping[str, str], *, output: int
    ) -> Answer:
        """Start a container's first process in its pod; `setup` is a command that becomes it."""
        holder = self._pods[pod].holder
        pipe = os.pipe()
        middle = os.fork()
        if not middle:
            _start(holder, setup, environment, pipe[1], output)
        os.close(pipe[1])
        os.close(output)
        pid = int(os.read(pipe[0], 32) or b"0")
        os.close(pipe[0])
        if not pid:
            return {"error": "can't enter the namespaces of the pod"}, ()
        self._live[container] = pid
        return {}, ()

    def signal(self, container: str, number: int) -> Answer:
        """Send a signal to a container's first process; with SIGKILL all its processes end."""
        if container in self._live:
            _kill(self._live[container], number)
        return {}, ()

    def look(self, pod: str, container: str) -> Answer:
        """The exit code of a container, None while it runs, and the ports on which the pod listens."""
        self.reap()
        pid = self._live.get(container)
        if pid in self._ends:
            del self._live[container]
            return {"exit": self._ends.pop(pid), "ports": []}, ()
        return {"exit": None, "ports": sorted(_ports(self._pods[pod].holder)) if pod in self._pods else []}, ()

    def socket(self, source: str) -> Answer:
        """A TCP socket of the pod whose address is `source`; without such a pod, one in the pods' network."""
        holder = {pod.address: pod.holder for pod in self._pods.values()}.get(source)
        if holder is None:
            return {}, (socket.socket(socket.AF_INET, socket.SOCK_STREAM).detach(),)
        with Path(f"/proc/{holder}/ns/net").open("rb") as network:
            _check(_LIBC.setns(network.fileno(), 0))
        try:
            return {}, (socket.socket(socket.AF_INET, socket.SOCK_STREAM).detach(),)
        finally:
            _check(_LIBC.setns(self._network, 0))

    def refuse(self, network: str) -> Answer:
        """Refuse connections to these addresses, e.g. of all Services, except where a socket listens."""
        _ip(f"route replace local {network} dev lo")
        return {}, ()

    def listen(self, address: str, port: int, kind: str = "tcp") -> Answer:
        """A socket that listens at any address outside pods, e.g. one of a Service."""
        if address != self._gateway:
            _ip(f"route replace local {address}/32 dev lo")
        made = socket.socket(socket.AF_INET, socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((address, port))
            if kind == "tcp":
                made.listen(64)
        except OSError as error:
            made.close()
            return {"error": f"{address}:{port}: {error.strerror}"}, ()
        return {}, (made.detach(),)

    def reap(self) -> None:
        """Note the ends of processes, also of orphans."""
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    return
                if pid in self._live.values():
                    code = os.waitstatus_to_exitcode(status)
                    self._ends[pid] = 128 - code if code < 0 else code

    def _forget_route(self, address: str) -> None:
        """A pod's address may have been answered from here."""
        with contextlib.suppress(RuntimeError):
            _ip(f"route del local {address}/32 dev lo")


def _hold(ready: int, go: int, hostname: str) -> None:
    """Hold the namespaces of a pod until killed."""
    os.setsid()
    _unshare(_NEW_NETWORK | _NEW_NAMES)
    socket.sethostname(hostname)
    os.write(ready, b"1")
    os.close(ready)
    os.read(go, 1)
    while True:
        signal.pause()


def _start(holder: int, setup: Sequence[str], environment: Mapping[str, str], pipe: int, output: int) -> None:
    """In a child: fork the container's first process, report its id, and end; never returns."""
    try:
        for kind in ("net", "uts"):
            with Path(f"/proc/{holder}/ns/{kind}").open("rb") as namespace:
                _check(_LIBC.setns(namespace.fileno(), 0))
        _unshare(_NEW_MOUNTS | _NEW_PROCESSES)
        pid = os.fork()
        if pid:
            os.write(pipe, str(pid).encode())
            os._exit(0)
        os.setsid()
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            # Python ignores them, and a program would inherit that
            signal.signal(number, signal.SIG_DFL)
        nothing = os.open("/dev/null", os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.closerange(3, 1024)
        os.execvpe(setup[0], list(setup), dict(environment))  # noqa: S606  (it is a shell)
    except OSError:
        traceback.print_exc()
    finally:
        os._exit(_CANNOT_START)


def _unshare(flags: int) -> None:
    _check(_LIBC.unshare(flags))


def _check(result: int) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _kill(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _ports(holder: int) -> set[int]:
    """The TCP ports on which a network listens."""
    ports = set()
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{holder}/net/{name}").read_text("ascii").splitlines()[1:]:
                local, _, state = line.split()[1:4]
                if state == _LISTEN:
                    ports.add(int(local.rpartition(":")[2], 16))
    return ports


def _ip(*commands: str, of: int | None = None) -> None:
    """Configure the network. Raises RuntimeError with the message of `ip`."""
    enter = ["nsenter", f"--net=/proc/{of}/ns/net"] if of is not None else []
    result = subprocess.run(  # noqa: S603  (its own commands)
        [*enter, "ip", "-batch", "-"], input="\n".join(commands), text=True, capture_output=True, check=False
    )
    if result.returncode:
        raise RuntimeError(f"ip: {result.stderr.strip()}")


def serve(control: socket.socket, agent: Agent) -> None:
    """Answer commands until the other side has gone."""
    commands: dict[str, Callable[..., Answer]] = {
        "pod": agent.pod,
        "end_pod": agent.end_pod,
        "memory": agent.memory,
        "start": agent.start,
        "signal": agent.signal,
        "look": agent.look,
        "socket": agent.socket,
        "refuse": agent.refuse,
        "listen": agent.listen,
    }
    while True:
        if not select.select([control], [], [], _REST)[0]:
            agent.reap()
            continue
        try:
            data, descriptors = _receive(control)
        except ConnectionResetError:
            return
        if not data:
            return
        command: dict[str, Any] = json.loads(data)
        if descriptors:
            command["output"] = descriptors[0]
        try:
            answer, sent = commands[command.pop("do")](**command)
        except (OSError, RuntimeError, KeyError) as error:
            answer, sent = {"error": str(error)}, ()
        _send(control, json.dumps(answer).encode(), sent)
        for descriptor in sent:
            os.close(descriptor)


def _receive(control: socket.socket) -> tuple[bytes, list[int]]:
    data, extra, _, _ = control.recvmsg(_LARGEST, socket.CMSG_SPACE(4))
    descriptors = array.array("i")
    for level, kind, content in extra:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            descriptors.frombytes(content[: len(content) - len(content) % descriptors.itemsize])
    return data, list(descriptors)


def _send(control: socket.socket, data: bytes, descriptors: Sequence[int]) -> None:
    extra = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
    control.sendmsg([data], extra)


def main() -> None:
    """`agent.py GATEWAY STATE`: `STATE` is a directory to remove at the end."""
    gateway, state = sys.argv[1:]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    control = socket.socket(fileno=0)
    try:
        agent = Agent(gateway)
    except (OSError, RuntimeError) as error:
        _send(control, json.dumps({"error": str(error)}).encode(), ())
        return
    _send(control, b"{}", ())
    try:
        serve(control, agent)
    finally:
        agent.end()
        shutil.rmtree(state, ignore_errors=True)


if __name__ == "__main__":
    main()

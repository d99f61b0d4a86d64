"""`python -m bench.soak` (`make soak`): informers under 200 events per second, with broken connections and server
restarts (informers-workqueue.md TEST-8).

Runs for half an hour, or SOAK_SECONDS, against the real kube-apiserver if it was built, else against the sandbox's. In
the end the caches equal a LIST, nothing has grown, and a list was repeated only if a watch could not continue.
"""

import base64
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

from bench.figures import logs_to_stderr, note, show
from informers.consistency import digest
from kube.client import Client
from kube.errors import ApiError, NotFound
from kube.objects import Json
from kube.resources import CONFIG_MAPS
from ports.randomness import SystemRandomness
from ports.stopping import Stop
from ports.transport import TransportError
from tests.controlplane.processes import require_or_reason, running
from tests.e2e.waiting import CLOCK, eventually, pause
from tests.informer_contract.relay import Relay
from tests.informer_contract.servers import RealServer, SandboxServer, Server

_SECONDS = float(os.environ.get("SOAK_SECONDS", "1800"))
_RATE = 200.0
_WRITERS = 4
_NAMES = 400
_KILL_EVERY = (2.0, 12.0)
_RESTART_EVERY = 60.0
_CALM = 75.0
"""Seconds without trouble before a measurement: dead watches have been given up, and the longest back-off is over."""
_PATIENCE = 60.0
_RANDOM = SystemRandomness()

_Sample: TypeAlias = dict[str, Any]
"""A report of bench.soaked."""


def main() -> int:
    """Run it. 1 if a promise was broken."""
    logs_to_stderr()
    with tempfile.TemporaryDirectory() as directory, _server(Path(directory)) as server:
        relay = Relay(server.port)
        try:
            return _soak(server, relay, _kubeconfig(server, relay, Path(directory)))
        finally:
            relay.close()


@contextlib.contextmanager
def _server(directory: Path) -> Iterator[Server]:
    if reason := require_or_reason():
        note(f"{reason}: in front of the sandbox")
        sandbox = SandboxServer(directory)
        yield sandbox
        sandbox.stop()
        return
    with running(directory, api_only=True) as control_plane:
        real = RealServer(control_plane, directory)
        yield real
        real.stop()


def _kubeconfig(server: Server, relay: Relay, directory: Path) -> Path:
    """The reader's kubeconfig, through the relay."""
    config = server.config(relay.port)
    cluster = {"server": config.server}
    if config.tls.ca:
        cluster["certificate-authority-data"] = base64.b64encode(config.tls.ca).decode()
    tree = {
        "clusters": [{"name": "soak", "cluster": cluster}],
        "users": [{"name": "soak", "user": {"tokenFile": str(server.token_file)}}],
        "contexts": [{"name": "soak", "context": {"cluster": "soak", "user": "soak"}}],
        "current-context": "soak",
    }
    path = directory / "kubeconfig"
    path.write_text(json.dumps(tree))
    return path


def _soak(server: Server, relay: Relay, kubeconfig: Path) -> int:
    stop, traffic = Stop(), _Traffic(server.admin)
    traffic.start(stop)
    soaked = _Soaked(kubeconfig)
    troubles = _Troubles(server, relay)
    try:
        # the first half lets caches and buffers grow to their size
        troubles.make(_SECONDS / 2)
        pause(_CALM)
        before = soaked.ask("sample")
        note(f"half-time: {json.dumps(before)}")
        troubles.make(_SECONDS / 2)
        pause(_CALM)
        after = soaked.ask("sample")
        stop.set()
        traffic.join()
        last = _settled(server, soaked)
    finally:
        stop.set()
        traffic.join()
        ended = soaked.end()
    note(f"end: {json.dumps(last)}")
    _show(before, after, troubles, traffic.writes)
    promises = _promises(before, after, last, 2 * (1 + troubles.restarts)) | {"it ended when asked": ended == 0}
    for promise, kept in promises.items():
        note(f"{'kept  ' if kept else 'BROKEN'} {promise}")
    return 0 if all(promises.values()) else 1


class _Traffic:
    """Creates, changes and deletes ConfigMaps at a steady pace, ignoring failures."""

    def __init__(self, client: Client) -> None:
        self.writes = 0
        self._client = client
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []

    def start(self, stop: Stop) -> None:
        """Write until stopped."""
        for number in range(_WRITERS):
            thread = threading.Thread(target=self._run, args=(number, stop), name=f"writer-{number}")
            self._threads.append(thread)
            thread.start()

    def join(self) -> None:
        """Wait until all writers have ended."""
        for thread in self._threads:
            thread.join()

    def _run(self, number: int, stop: Stop) -> None:
        due = CLOCK.now()
        while not stop.wait(CLOCK, due - CLOCK.now()):
            # do not catch up after an outage
            due = max(due, CLOCK.now() - 1.0) + _WRITERS / _RATE
            name = f"soak-{number}-{_RANDOM.integer(0, _NAMES // _WRITERS - 1)}"
            with contextlib.suppress(ApiError, TransportError):
                self._write(name)
                with self._lock:
                    self.writes += 1

    def _write(self, name: str) -> None:
        data: Json = {"data": {"value": str(_RANDOM.integer(0, 1 << 30)), "padding": "x" * 500}}
        if _RANDOM.integer(1, 10) == 1:
            self._client.delete(CONFIG_MAPS, name, "default")
            return
        try:
            self._client.patch(CONFIG_MAPS, name, "default", data)
        except NotFound:
            self._client.create(CONFIG_MAPS, {"metadata": {"name": name}, **data}, "default")


class _Troubles:
    """Troubles of the connection and of the server."""

    def __init__(self, server: Server, relay: Relay) -> None:
        self.restarts = 0
        self.kills = 0
        self._server = server
        self._relay = relay

    def make(self, seconds: float) -> None:
        """Make trouble for some seconds."""
        end = CLOCK.now() + seconds
        restart = CLOCK.now() + _RESTART_EVERY / 2
        while CLOCK.now() < end:
            pause(_RANDOM.uniform(*_KILL_EVERY))
            if CLOCK.now() >= restart:
                self._server.restart()
                self.restarts += 1
                restart = CLOCK.now() + _RESTART_EVERY
                continue
            self._any()()
            self.kills += 1

    def _any(self) -> Callable[[], None]:
        kinds = (self._relay.cut, self._relay.cut, self._relay.freeze, self._away)
        return kinds[_RANDOM.integer(0, len(kinds) - 1)]

    def _away(self) -> None:
        with self._relay.away():
            pause(_RANDOM.uniform(0.1, 3.0))


class _Soaked:
    """The process of bench.soaked."""

    def __init__(self, kubeconfig: Path) -> None:
        command = [sys.executable, "-m", "bench.soaked", str(kubeconfig)]
        self._process = subprocess.Popen(  # noqa: S603  (our own program)
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, what: str) -> _Sample:
        """Its answer. Raises RuntimeError if it has ended."""
        assert self._process.stdin
        assert self._process.stdout
        print(what, file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"bench.soaked ended with {self._process.wait()}")
        answer: _Sample = json.loads(line)
        return answer

    def end(self) -> int:
        """Its exit code."""
        try:
            self._process.communicate(timeout=60.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
        return self._process.returncode


def _settled(server: Server, soaked: _Soaked) -> _Sample:
    """The comparison with the server, after all writes have ended and been delivered."""
    last: _Sample = {}

    def equal() -> bool:
        last.clear()
        last.update(soaked.ask("check"))
        last["server"] = digest(server.admin.list_page(CONFIG_MAPS).items)
        same = set(last["digests"].values()) == {last["server"]}
        return same and not last["differences"] and not last["unworked"]

    with contextlib.suppress(AssertionError):
        eventually(equal, within=_PATIENCE)
    return last


def _show(before: _Sample, after: _Sample, troubles: _Troubles, writes: int) -> None:
    show("soak_writes_per_second", writes / (_SECONDS + 2 * _CALM), _RATE, "1/s", "aim")
    show("soak_connection_kills", troubles.kills, None, "kills")
    show("soak_restarts", troubles.restarts, None, "restarts")
    show("soak_lists", after["lists"], None, "lists")
    show("soak_memory", after["resident_mb"], round(before["resident_mb"], 1), "MB", "at half-time")
    show("soak_threads", after["threads"], before["threads"], "threads", "at half-time")
    show("soak_files", after["files"], before["files"], "open files", "at half-time")


def _promises(before: _Sample, after: _Sample, last: _Sample, lists: int) -> dict[str, bool]:
    """The promises, and whether each was kept. `lists`: one per informer, and one per restart, which loses history."""
    return {
        "the caches are what the server lists": set(last["digests"].values()) == {last["server"]},
        "a list at its version shows no difference": not last["differences"],
        "workers saw the last state of everything": not last["unworked"],
        f"no list where a watch could continue, so {lists} at most": last["lists"] <= lists,
        "no growth of memory": after["resident_mb"] <= 1.1 * before["resident_mb"] + 5,
        "no growth of threads": after["threads"] <= before["threads"],
        "no growth of open files": after["files"] <= before["files"] + 2,
    }


if __name__ == "__main__":
    sys.exit(main())

"""The sandbox's PD gives the answers that `tests.sandbox.record_pd` recorded of a real one
(dataplane-apis.md 3, 15.1).
"""

import json
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from kube.resources import STATEFUL_SETS
from ports.clock import FakeClock
from ports.randomness import SeededRandomness
from ports.transport import Request, TransportError
from sandbox.world import World
from tests.sandbox.clusters import NAMESPACE, create, create_discovery, discovery
from tests.sandbox.pd_conversation import NO_ANSWER, Answer, transcript

_RECORDINGS = Path(__file__).parent / "recorded_pd"
_TIMEOUT = 5.0
_OTHERWISE: Mapping[str, tuple[str, ...]] = {
    "v7.5.6": ("no quorum: * /pd/*", "*/ready", "*/ms/members/tso", "evictions: GET *"),
}
"""Questions that older versions answer differently or not at all: the sandbox emulates v8.5."""


class SandboxPD:
    """Members and stores in pods of the sandbox."""

    def __init__(self, world: World, version: str) -> None:
        self._world, self._added = world, 0
        create_discovery(world.client())
        create(world.client(), "pd", 3, version=version)
        create(world.client(), "tikv", 0, version=version)
        world.run_until_settled()

    def ask(self, member: int, method: str, path: str, body: object = None) -> Answer:
        payload = None if body is None else json.dumps(body).encode()
        url = f"http://{self.name(member)}.basic-pd-peer.default.svc:2379{path}"
        try:
            answer = self._world.data_plane_transport().request(Request(method, url, body=payload, timeout=_TIMEOUT))
        except TransportError:
            return NO_ANSWER, ""
        return answer.status, answer.body.decode()

    def name(self, member: int) -> str:
        return f"basic-pd-{member}"

    def add_store(self) -> int:
        self._added += 1
        self._world.client().patch(STATEFUL_SETS, "basic-tikv", NAMESPACE, {"spec": {"replicas": self._added}})
        self.wait(lambda: self._newest() is not None)
        return int(self._newest() or 0)

    def restart(self, member: int) -> None:
        self._world.faults.pod_crash(f"{NAMESPACE}/{self.name(member)}")

    def kill(self, member: int) -> None:
        self._world.faults.pod_crash_loop(f"{NAMESPACE}/{self.name(member)}")

    def pause(self, seconds: float) -> None:
        self._world.advance(seconds)

    def wait(self, condition: Callable[[], bool]) -> None:
        self._world.run_until(condition, 120)

    def _newest(self) -> int | None:
        status, text = self.ask(0, "GET", "/pd/api/v1/stores")
        found = json.loads(text)["stores"] if status == 200 else []
        pod = f"basic-tikv-{self._added - 1}."
        up = (each["store"] for each in found if each["store"]["state_name"] == "Up")
        return next((store["id"] for store in up if store["address"].startswith(pod)), None)


@pytest.fixture
def world(clock: FakeClock) -> Iterator[World]:
    made = World(clock, SeededRandomness(1), programs={"/usr/local/bin/tidb-discovery": discovery})
    yield made
    made.stop()


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(_RECORDINGS.glob("*.json")), ids=lambda path: path.stem)
@pytest.mark.rule("dataplane-apis-3")
def test_pd_answers_like_the_recorded_one(world: World, path: Path) -> None:
    recorded = json.loads(path.read_text(encoding="utf-8"))
    said = transcript(SandboxPD(world, path.stem))
    assert recorded.keys() == said.keys()
    older = _OTHERWISE.get(path.stem, ())
    unlike = [
        each
        for each in recorded
        if not _is_like(said[each], recorded[each]) and not any(fnmatchcase(each, glob) for glob in older)
    ]
    assert [] == [f"{each} -> {said[each]}, a real one: {recorded[each]}" for each in unlike]


def _is_like(said: Any, real: Any) -> bool:
    """True if the answers agree, except for additional keys of the real one."""
    if isinstance(said, dict) and isinstance(real, dict):
        return all(key in real and _is_like(value, real[key]) for key, value in said.items())
    if isinstance(said, list) and isinstance(real, list):
        return len(said) <= len(real) and all(map(_is_like, said, real))
    return bool(said == real)

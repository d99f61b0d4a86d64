"""Captures of the sandbox (dataplane-apis.md 8, 15.3)."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from ports.clock import FakeClock
from ports.transport import Request, Response
from sandbox.dataplane.processes import Exit, Launch
from sandbox.dataplane.ticdc.book import Book, CaptureInfo
from sandbox.dataplane.ticdc.process import moved
from tests.operator_world import NAMESPACE, OperatorWorld, sample
from tests.sandbox.clusters import get
from tests.sandbox.test_tiproxy import Proxy


def capture(name: str, *, stopping: bool = False) -> CaptureInfo:
    return CaptureInfo(name, f"{name}:8301", "v8.5.2", stopping)


@pytest.mark.parametrize(
    ("assigned", "stopping", "count", "expected"),
    [
        ({}, (), 4, {"a": ["0", "2"], "b": ["1", "3"]}),
        ({}, (), 1, {"a": ["0"], "b": []}),
        ({"a": ["0", "1", "2", "3"]}, (), 9, {"a": ["0", "1"], "b": ["3", "2"]}),
        ({"a": ["0", "1"], "b": ["2", "3"]}, ("b",), 1, {"a": ["0", "1", "3"], "b": ["2"]}),
        ({"a": ["0", "1"], "gone": ["2", "3"]}, (), 9, {"a": ["0", "1"], "b": ["2", "3"]}),
        ({"a": ["0", "1", "2", "3"]}, ("a", "b"), 9, {"a": ["0", "1", "2", "3"], "b": []}),
        ({"a": ["0", "1", "2", "3", "old"]}, ("b",), 9, {"a": ["0", "1", "2", "3"], "b": []}),
    ],
)
@pytest.mark.rule("dataplane-apis-15.3")
def test_unassigned_tables_move_first_then_tables_of_stopping_captures(
    assigned: dict[str, list[str]], stopping: tuple[str, ...], count: int, expected: dict[str, list[str]]
) -> None:
    captures = {name: capture(name, stopping=name in stopping) for name in ("a", "b")}
    assert expected == moved({"0", "1", "2", "3"}, assigned, captures, count)


class Captures:
    """A cluster with captures, created by the operator."""

    def __init__(self, clock: FakeClock, replicas: int, version: str = "v8.5.2") -> None:
        self.world = OperatorWorld(clock=clock)
        cluster = sample("basic")
        cluster["spec"]["ticdc"] = {"baseImage": "pingcap/ticdc", "replicas": replicas, "version": version}
        self.world.apply(cluster)
        self.world.run_until_ready()
        self.world.world.faults.changefeed(f"{NAMESPACE}/basic", 6)
        self.run(10.0)

    def run(self, seconds: float) -> None:
        self.world.world.advance(seconds)

    def book(self) -> Book:
        pd = self.world.world.data_plane.pd_cluster(NAMESPACE, "basic")
        assert pd is not None
        return Book(pd.etcd, self.world.clock.now())

    def ask(self, ordinal: int, path: str) -> Any:
        return get(self.world.world.data_plane_transport(), self.url(ordinal) + path)

    def send(self, method: str, ordinal: int, path: str, body: object = None) -> Response:
        payload = None if body is None else json.dumps(body).encode()
        transport = self.world.world.data_plane_transport()
        return transport.request(Request(method, self.url(ordinal) + path, body=payload))

    def url(self, ordinal: int) -> str:
        return f"http://basic-ticdc-{ordinal}.basic-ticdc-peer.{NAMESPACE}:8301"

    def owner(self) -> int:
        return next(int(each["address"].partition(".")[0][-1]) for each in self.captures() if each["is_owner"])

    def captures(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.ask(0, "/api/v1/captures")
        return found

    def id_of(self, ordinal: int) -> str:
        return str(self.ask(ordinal, "/status")["id"])

    def tables(self, ordinal: int) -> int:
        return len(self.book().assigned().get(self.id_of(ordinal), ()))


@pytest.fixture
def three(clock: FakeClock) -> Iterator[Captures]:
    made = Captures(clock, 3)
    yield made
    made.world.stop()


@pytest.mark.slow
@pytest.mark.rule("dataplane-apis-15.3")
def test_one_capture_is_the_owner_and_all_have_tables(three: Captures) -> None:
    assert 1 == sum(each["is_owner"] for each in three.captures())
    assert [2, 2, 2] == [three.tables(ordinal) for ordinal in range(3)]
    assert [True] == [each for n in range(3) if (each := three.ask(n, "/status")["is_owner"])]


@pytest.mark.slow
@pytest.mark.rule("dataplane-apis-8")
def test_another_capture_becomes_owner_when_the_owner_resigns(three: Captures) -> None:
    before = three.owner()
    assert 202 == three.send("POST", before, "/api/v1/owner/resign").status
    assert 503 == three.send("GET", before, "/api/v1/captures").status
    three.run(5.0)
    assert before != three.owner()


@pytest.mark.slow
@pytest.mark.rule("dataplane-apis-8")
def test_a_drained_capture_loses_its_tables_to_others_and_gets_none(three: Captures) -> None:
    leaving = (three.owner() + 1) % 3
    body = {"capture_id": three.id_of(leaving)}
    assert {"current_table_count": 2} == json.loads(three.send("PUT", leaving, "/api/v1/captures/drain", body).body)
    three.run(5.0)
    assert {"current_table_count": 0} == json.loads(three.send("PUT", leaving, "/api/v1/captures/drain", body).body)
    assert (0, 6) == (three.tables(leaving), sum(three.tables(ordinal) for ordinal in range(3)))
    assert 1 == three.ask(leaving, "/status")["liveness"]


@pytest.mark.slow
@pytest.mark.rule("dataplane-apis-8")
def test_drains_neither_the_owner_nor_an_unknown_capture(three: Captures) -> None:
    for target in (three.id_of(three.owner()), "nobody"):
        assert 400 == three.send("PUT", 0, "/api/v1/captures/drain", {"capture_id": target}).status
    assert 400 == three.send("PUT", 0, "/api/v1/captures/drain", {}).status


@pytest.mark.slow
@pytest.mark.rule("dataplane-apis-15.3")
def test_tables_of_a_capture_that_ends_wait_until_the_owner_misses_it(three: Captures) -> None:
    lost = (three.owner() + 1) % 3
    three.world.world.data_plane.crash(NAMESPACE, f"basic-ticdc-{lost}")
    three.run(5.0)
    held = three.book().assigned()
    living = {three.id_of(ordinal) for ordinal in range(3)}
    # the capture that replaced it may have got one by now
    assert 1 <= sum(len(tables) for name, tables in held.items() if name not in living)
    three.run(20.0)
    assert [2, 2, 2] == [three.tables(ordinal) for ordinal in range(3)]


@pytest.mark.slow
@pytest.mark.rule("dataplane-apis-15.3")
def test_without_pd_a_capture_knows_nothing(three: Captures) -> None:
    three.world.world.faults.pd_no_leader(f"{NAMESPACE}/basic")
    assert 500 == three.send("GET", 0, "/api/v1/captures").status
    assert 200 == three.send("GET", 0, "/status").status


@pytest.mark.rule("dataplane-apis-8")
def test_a_sole_capture_is_not_drained_and_is_elected_again(clock: FakeClock) -> None:
    one = Captures(clock, 1)
    assert 400 == one.send("PUT", 0, "/api/v1/captures/drain", {"capture_id": one.id_of(0)}).status
    one.send("POST", 0, "/api/v1/owner/resign")
    one.run(5.0)
    assert 0 == one.owner()
    one.world.stop()


@pytest.mark.rule("dataplane-apis-8")
def test_before_6_3_there_is_no_draining(clock: FakeClock) -> None:
    old = Captures(clock, 2, "v6.2.0")
    assert 404 == old.send("PUT", 0, "/api/v1/captures/drain", {"capture_id": "any"}).status
    assert 2 == len(old.captures())
    old.world.stop()


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("/cdc", "--addr=0.0.0.0:8301"), "unknown command '--addr=0.0.0.0:8301' for 'cdc'"),
        (("/cdc", "server", "--ca=/nowhere"), "open /nowhere: no such file or directory"),
    ],
)
@pytest.mark.rule("7.7")
def test_does_not_start_with_an_invalid_configuration(clock: FakeClock, command: tuple[str, ...], message: str) -> None:
    launch = Launch(
        namespace="ns", pod="basic-ticdc-0", pod_uid="basic-ticdc-0", image="pingcap/ticdc:v8.5.2", command=command
    )
    assert Exit(1, message) == Proxy(clock, replace(launch)).running.process.exit

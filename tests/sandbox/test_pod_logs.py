"""`kubectl logs`, and refusals of other access to containers, which are simulated."""

import threading
from collections.abc import Iterator
from urllib.parse import urlencode

import pytest

from kube.errors import ApiError, BadRequest, NotFound
from ports.clock import FakeClock, SystemClock
from sandbox.apiserver.pod_logs import FollowedLog, Shown
from sandbox.dataplane.output import Output
from tests.operator_world import NAMESPACE, OperatorWorld, sample


@pytest.fixture(scope="module")
def world() -> Iterator[OperatorWorld]:
    world = OperatorWorld()
    world.apply(sample("basic"))
    world.run_until_ready()
    yield world
    world.stop()


def _log(world: OperatorWorld, pod: str, **query: str) -> str:
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}/log?{urlencode(query)}"
    return world.admin.request("GET", path).body.decode()


def test_a_log_has_the_output_of_start_script_and_server(world: OperatorWorld) -> None:
    lines = _log(world, "basic-pd-0").splitlines()
    assert lines[0].endswith("basic-pd-0.basic-pd-peer.default.svc resolves")
    assert any('["Welcome to pd-server, simulated"] [version=8.5.2]' in line for line in lines)
    assert any("--name=basic-pd-0" in line for line in lines)
    assert lines[-1].endswith('[INFO] ["listening"] [port=2380]')


def test_a_log_is_cut_and_stamped_as_requested(world: OperatorWorld) -> None:
    whole = _log(world, "basic-pd-0").splitlines()
    assert whole[-2:] == _log(world, "basic-pd-0", tailLines="2").splitlines()
    assert "" == _log(world, "basic-pd-0", tailLines="0")
    assert whole[0][:5] == _log(world, "basic-pd-0", limitBytes="5")
    assert "" == _log(world, "basic-pd-0", sinceTime="2999-01-01T00:00:00Z")
    stamped = _log(world, "basic-pd-0", timestamps="true").splitlines()
    assert [f"Z {line}" for line in whole] == ["Z " + line.partition("Z ")[2] for line in stamped]


def test_keeps_the_log_of_the_previous_run(world: OperatorWorld) -> None:
    first = _log(world, "basic-tikv-0")
    world.world.data_plane.crash(NAMESPACE, "basic-tikv-0")
    world.run(30)
    before, now = _log(world, "basic-tikv-0", previous="true"), _log(world, "basic-tikv-0")
    assert all("Welcome to tikv-server" in each for each in (before, now))
    assert first == before != now


@pytest.mark.parametrize(
    ("pod", "query", "told"),
    [
        ("basic-pd-0", {"previous": "true"}, 'previous terminated container "pd" in pod "basic-pd-0" not found'),
        ("basic-pd-0", {"container": "x"}, "container x is not valid for pod basic-pd-0"),
        ("basic-tidb-0", {}, "a container name must be specified for pod basic-tidb-0, choose one of: [slowlog tidb]"),
        ("basic-pd-0", {"tailLines": "many"}, "tailLines: Invalid value"),
        ("basic-pd-0", {"sinceTime": "noon"}, "sinceTime: Invalid value"),
    ],
)
def test_refuses_the_log_of_a_container_without_one(
    world: OperatorWorld, pod: str, query: dict[str, str], told: str
) -> None:
    with pytest.raises(BadRequest) as refused:
        _log(world, pod, **query)
    assert told in refused.value.message


def test_a_missing_pod_has_no_log(world: OperatorWorld) -> None:
    with pytest.raises(NotFound):
        _log(world, "nobody")


@pytest.mark.parametrize("way", ["attach", "exec", "proxy"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_refuses_access_to_containers_with_a_message(world: OperatorWorld, way: str, method: str) -> None:
    with pytest.raises(ApiError) as refused:
        world.admin.request(method, f"/api/v1/namespaces/{NAMESPACE}/pods/basic-pd-0/{way}")
    assert 501 == refused.value.code
    assert f"pods/{way} is not implemented" in refused.value.message
    assert "kubectl logs" in refused.value.message


def test_refuses_to_forward_ports_over_web_sockets_with_the_protocol_that_it_knows(world: OperatorWorld) -> None:
    with pytest.raises(ApiError, match=r"ports are forwarded over SPDY/3.1 alone") as refused:
        world.admin.request("GET", f"/api/v1/namespaces/{NAMESPACE}/pods/basic-pd-0/portforward")
    assert 501 == refused.value.code


def test_the_log_of_a_waiting_container_gives_the_reason() -> None:
    world = OperatorWorld()
    cluster = sample("basic")
    cluster["spec"]["version"] = "v0.0.0-none"
    world.apply(cluster)
    world.run(20)
    with pytest.raises(
        BadRequest, match=r'container "pd" in pod "basic-pd-0" is waiting to start: (ErrImagePull|Image)'
    ):
        _log(world, "basic-pd-0")
    world.stop()


def test_a_log_is_followed_to_the_end_of_its_container() -> None:
    clock = SystemClock()
    output = Output(clock)
    output.say("one\ntw")
    seen: list[bytes] = []
    first = threading.Event()

    def read() -> None:
        for chunk in FollowedLog(output, Shown({}, clock), clock):
            seen.append(chunk)
            first.set()

    reader = threading.Thread(target=read)
    reader.start()
    assert first.wait(5)
    output.say("o\nthree")
    output.end()
    reader.join(5)
    assert not reader.is_alive()
    assert b"one\ntwo\nthree\n" == b"".join(seen)


def test_a_client_that_disconnects_stops_following() -> None:
    clock = SystemClock()
    stream = FollowedLog(Output(clock), Shown({}, clock), clock)
    reader = threading.Thread(target=lambda: list(stream))
    reader.start()
    stream.abort()
    reader.join(5)
    assert not reader.is_alive()


def test_keeps_only_the_newest_lines() -> None:
    output = Output(FakeClock())
    output.say("".join(f"{number}\n" for number in range(5000)))
    kept = output.after(0)
    assert (2000, "4999") == (len(kept), kept[-1].text)

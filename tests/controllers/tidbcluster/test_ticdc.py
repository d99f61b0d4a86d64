"""TiCDC in a cluster that works (lifecycle.md 5.6, 6.8, 7.2, 7.7, 8.8)."""

from collections.abc import Iterator

import pytest

from kube.objects import Json
from kube.resources import CONFIG_MAPS, PODS, STATEFUL_SETS
from ports.clock import FakeClock
from sandbox.dataplane.faults import Fault, Trouble
from sandbox.dataplane.ticdc.book import Book
from tests.controllers.tidbcluster.test_tls import TlsWorld
from tests.operator_world import NAMESPACE, OperatorWorld, sample

TABLES = 6


def with_captures(**fields: object) -> Json:
    cluster = sample("basic")
    cluster["spec"]["ticdc"] = {"baseImage": "pingcap/ticdc", "replicas": 2, "version": "v8.5.2", **fields}
    return cluster


def replicating(world: OperatorWorld, **fields: object) -> OperatorWorld:
    """The cluster, Ready, with tables spread over its captures; nothing is counted yet."""
    world.apply(with_captures(**fields))
    world.run_until_ready()
    world.world.faults.changefeed(f"{NAMESPACE}/basic", TABLES)
    world.run(10.0)
    assert TABLES == sum(tables(world).values())
    world.forget()
    return world


@pytest.fixture(name="basic")
def _basic(clock: FakeClock) -> Iterator[OperatorWorld]:
    world = OperatorWorld(clock=clock)
    yield replicating(world)
    world.stop()


def captures(world: OperatorWorld) -> Json:
    found: Json = world.cluster()["status"]["ticdc"]["captures"]
    return found


def tables(world: OperatorWorld) -> dict[str, int]:
    """The number of tables of each registered capture, by pod."""
    pd = world.world.data_plane.pd_cluster(NAMESPACE, "basic")
    assert pd is not None
    book = Book(pd.etcd, world.clock.now())
    assigned = book.assigned()
    return {each.address.partition(".")[0]: len(assigned.get(each.id, ())) for each in book.captures().values()}


def versions(world: OperatorWorld) -> list[str]:
    pods = sorted(world.every(PODS), key=lambda pod: str(pod["metadata"]["name"]))
    images = [each["spec"]["containers"][0]["image"] for each in pods if "-ticdc-" in each["metadata"]["name"]]
    return [image.rpartition(":")[2] for image in images]


def message(world: OperatorWorld) -> str:
    return str(world.condition("Progressing").get("message", ""))


def asked(world: OperatorWorld) -> list[str]:
    """The requests to captures, in order, without repetitions in a row."""
    calls = [f"{each.method} {each.url.rpartition('/v1/')[2]}" for each in world.operator.dataplane.writes()]
    return [each for before, each in zip(["", *calls], calls, strict=False) if each != before]


@pytest.mark.slow
@pytest.mark.rule("lifecycle-5.6")
def test_the_status_lists_the_captures(basic: OperatorWorld) -> None:
    found = captures(basic)
    assert ["basic-ticdc-0", "basic-ticdc-1"] == list(found)
    assert {"v8.5.2"} == {each["version"] for each in found.values()}
    assert 2 == len({each["id"] for each in found.values()})
    basic.run_until(lambda: [True] == [each["isOwner"] for each in captures(basic).values() if "isOwner" in each])
    assert basic.cluster()["status"]["ticdc"]["synced"]
    assert not basic.exists(CONFIG_MAPS, "basic-ticdc")


@pytest.mark.rule("lifecycle-5.6")
def test_a_silent_capture_is_not_ready(basic: OperatorWorld) -> None:
    basic.world.data_plane.hang(NAMESPACE, "basic-ticdc-1")
    basic.run_until(lambda: basic.condition("Ready")["reason"] == "TiCDCCaptureNotReady")
    assert [True, False] == [each.get("ready", False) for each in captures(basic).values()]
    assert not basic.cluster()["status"]["ticdc"].get("synced", False)


@pytest.mark.slow
@pytest.mark.rule("lifecycle-3.1")
def test_ticdc_starts_when_pd_and_tikv_serve(world: OperatorWorld) -> None:
    world.apply(with_captures())
    world.run_until(lambda: world.exists(STATEFUL_SETS, "basic-pd"))
    assert not world.exists(STATEFUL_SETS, "basic-ticdc")
    world.run_until_ready()


@pytest.mark.slow
@pytest.mark.rule("lifecycle-7.7")
def test_drains_each_capture_before_its_restart(basic: OperatorWorld) -> None:
    basic.change(ticdc={"version": "v8.5.3"})
    fewest = TABLES

    def done() -> bool:
        nonlocal fewest
        fewest = min(fewest, sum(tables(basic).values()))
        return versions(basic) == ["v8.5.3", "v8.5.3"] and basic.is_ready()

    basic.run_until(done, within=120.0)
    assert TABLES == fewest
    assert {"POST owner/resign", "PUT captures/drain"} == set(asked(basic))


@pytest.mark.slow
@pytest.mark.rule("lifecycle-7.2")
def test_ticdc_is_restarted_after_all_other_components(basic: OperatorWorld) -> None:
    basic.change(version="v8.5.3", ticdc={"version": "v8.5.3"})
    order: list[str] = []

    def done() -> bool:
        for name in ("pd", "tikv", "tidb", "ticdc"):
            if basic.cluster()["status"][name].get("phase") == "Upgrade" and name not in order:
                order.append(name)
        return versions(basic) == ["v8.5.3", "v8.5.3"] and basic.reason() == "Done"

    basic.run_until(done, within=300.0)
    assert "ticdc" == order[-1]


@pytest.mark.slow
@pytest.mark.parametrize("status", [400, 500, 503])
@pytest.mark.rule("lifecycle-18")
def test_an_error_does_not_count_as_a_capture_without_tables(basic: OperatorWorld, status: int) -> None:
    refusing = Fault(Trouble.ANSWER, target="*ticdc*", path="/api/v1/captures*", status=status, body=b"{}")
    basic.world.data_plane.network.inject(refusing)
    basic.change(ticdc={"version": "v8.5.3"})
    basic.run_until(lambda: basic.reason() == "HandingOver")
    basic.run(60.0)
    assert ["v8.5.2", "v8.5.2"] == versions(basic)
    assert f"error response {status}" in message(basic)
    basic.world.data_plane.network.heal(refusing)
    basic.run_until(lambda: versions(basic) == ["v8.5.3", "v8.5.3"], within=120.0)


@pytest.mark.slow
@pytest.mark.rule("lifecycle-7.7")
def test_after_the_timeout_the_pod_goes_anyway_and_an_event_reports_it(world: OperatorWorld) -> None:
    replicating(world, gracefulShutdownTimeout="1m")
    world.world.data_plane.network.inject(
        Fault(Trouble.ANSWER, target="*ticdc*", path="/api/v1/captures/drain", status=503)
    )
    world.change(ticdc={"version": "v8.5.3"})
    world.run(50.0)
    assert ["v8.5.2", "v8.5.2"] == versions(world)
    world.run_until(lambda: versions(world) == ["v8.5.2", "v8.5.3"], within=30.0)
    assert "has not given up its tables after 60 s" in world.messages("GracefulShutdownTimeout")[0]


@pytest.mark.slow
@pytest.mark.rule("lifecycle-7.7")
def test_restarts_a_version_without_draining_support_immediately(world: OperatorWorld) -> None:
    replicating(world, version="v6.2.0")
    world.change(ticdc={"version": "v6.5.0"})
    world.run_until(lambda: versions(world) == ["v6.5.0", "v6.5.0"], within=60.0)
    assert [] == asked(world)


@pytest.mark.slow
@pytest.mark.rule("lifecycle-7.7")
def test_restarts_a_single_capture_without_draining_it(world: OperatorWorld) -> None:
    replicating(world, replicas=1)
    world.change(ticdc={"version": "v8.5.3"})
    world.run_until(lambda: versions(world) == ["v8.5.3"], within=60.0)
    assert [] == asked(world)


@pytest.mark.slow
@pytest.mark.rule("lifecycle-8.8")
def test_drains_a_capture_before_its_removal(basic: OperatorWorld) -> None:
    basic.change(ticdc={"replicas": 1})
    basic.run_until(lambda: basic.reason() == "HandingOver")
    assert 2 == basic.replicas("ticdc")
    basic.run_until_ready(within=120.0)
    assert {"basic-ticdc-0": TABLES} == tables(basic)


@pytest.mark.slow
@pytest.mark.rule("lifecycle-8.8")
def test_keeps_a_capture_when_its_scale_in_is_reverted(basic: OperatorWorld) -> None:
    basic.change(ticdc={"replicas": 1})
    basic.run_until(lambda: basic.reason() == "HandingOver")
    basic.change(ticdc={"replicas": 2})
    basic.run_until_ready()
    assert ([], 2) == (basic.asked_replicas("ticdc"), len(captures(basic)))


@pytest.mark.slow
@pytest.mark.rule("lifecycle-8.8")
def test_scales_in_to_no_captures(basic: OperatorWorld) -> None:
    basic.change(ticdc={"replicas": 0})
    basic.run_until_ready(within=120.0)
    assert {} == basic.cluster()["status"]["ticdc"].get("captures", {})


@pytest.mark.slow
@pytest.mark.rule("lifecycle-1.1")
def test_the_config_file_exists_only_while_it_has_content(basic: OperatorWorld) -> None:
    basic.change(ticdc={"config": "data-dir = '/tmp/sort'\n"})
    basic.run_until(lambda: any("basic-ticdc" in each["metadata"]["name"] for each in basic.every(CONFIG_MAPS)))
    basic.run_until_ready(within=120.0)
    assert "config" in [each["name"] for each in _pod(basic)["volumes"]]
    basic.change(ticdc={"config": None})
    basic.run_until(lambda: "config" not in [each["name"] for each in _pod(basic)["volumes"]], within=60.0)
    basic.run_until_ready(within=120.0)


def _pod(world: OperatorWorld) -> Json:
    found: Json = world.get(STATEFUL_SETS, "basic-ticdc")["spec"]["template"]["spec"]
    return found | {"volumes": found.get("volumes") or []}


@pytest.mark.slow
@pytest.mark.rule("lifecycle-9")
def test_captures_serve_tls(world: OperatorWorld) -> None:
    tls = TlsWorld(world)
    tls.put_all()
    tls.put("ticdc")
    cluster = with_captures()
    cluster["spec"]["tlsCluster"] = {"enabled": True}
    world.apply(cluster)
    world.run_until_ready()
    world.change(ticdc={"version": "v8.5.3"})
    world.run_until(lambda: versions(world) == ["v8.5.3", "v8.5.3"] and world.is_ready(), within=120.0)


def test_a_restart_names_its_cause_even_without_a_configuration(basic: OperatorWorld) -> None:
    def finished(**ticdc: object) -> str:
        basic.change(ticdc=ticdc)
        basic.run(5.0)
        basic.run_until_ready(within=300.0)
        return basic.messages("RollFinished")[-1].partition("of ticdc are up to date ")[2]

    image = 'spec.template.spec.containers[0].image: "pingcap/ticdc:v8.5.2" → "pingcap/ticdc:v8.5.3"'
    assert f"({image})" == finished(version="v8.5.3")
    assert "(spec.ticdc.config: there was no configuration)" == finished(config="per-table-memory-quota = 1024\n")
    assert "(spec.ticdc.config was removed)" == finished(config=None)

"""A TidbInitializer in the sandbox, end to end: the Job's pod waits for TiDB, sets passwords and runs SQL."""

from collections.abc import Iterator

import pytest
import yaml

from kube.objects import Json, condition_of
from kube.resources import JOBS, SECRETS, TIDB_INITIALIZERS
from member.initializer.desired import with_settings
from member.initializer.initialize import Settings
from ports.clock import FakeClock
from sandbox.dataplane.initializer import _settings
from tests.operator_world import NAMESPACE, SAMPLES, OperatorWorld, sample


@pytest.fixture
def world(clock: FakeClock) -> Iterator[OperatorWorld]:
    made = OperatorWorld(clock=clock)
    yield made
    made.stop()


def apply_sample(world: OperatorWorld, **spec: object) -> None:
    """Create the Secret and TidbInitializer of the sample before the cluster."""
    secret, initializer = yaml.safe_load_all((SAMPLES / "initializer.yaml").read_text(encoding="utf-8"))
    world.admin.create(SECRETS, secret, NAMESPACE)
    initializer["spec"] |= spec
    world.admin.create(TIDB_INITIALIZERS, initializer, NAMESPACE)


def status(world: OperatorWorld) -> Json:
    found: Json = world.get(TIDB_INITIALIZERS, "basic").get("status") or {}
    return found


@pytest.mark.slow
@pytest.mark.rule("2.5")
def test_the_sample_initializes_the_cluster_that_is_created_later(world: OperatorWorld) -> None:
    apply_sample(world)
    world.run(5)
    assert "Pending" == status(world)["phase"]
    world.apply(sample("basic"))
    world.run_until(lambda: status(world)["phase"] in ("Completed", "Failed"), 120)
    assert "Completed" == status(world)["phase"], status(world)
    pd = world.world.data_plane.pd_cluster(NAMESPACE, "basic")
    assert pd is not None
    assert {"root": "change-me", "app": "change-me-too"} == pd.users
    assert ["app"] == pd.tables.schemas()
    assert ["visits"] == [each.name for each in pd.tables.tables()]

    uid = world.get(JOBS, "basic-tidb-initializer")["metadata"]["uid"]
    again: Json = {"metadata": {"annotations": {"tidb.pingcap.com/run": "2"}}}
    world.admin.patch(TIDB_INITIALIZERS, "basic", NAMESPACE, again)
    world.run(60)
    assert "Completed" == status(world)["phase"], status(world)
    assert uid != world.get(JOBS, "basic-tidb-initializer")["metadata"]["uid"]


@pytest.mark.slow
@pytest.mark.rule("2.5")
def test_reports_the_number_of_a_failed_statement(world: OperatorWorld) -> None:
    world.apply(sample("basic"))
    apply_sample(world, initSql="CREATE DATABASE app;\n-- once more\nCREATE DATABASE app;")
    world.run_until(lambda: status(world).get("phase") == "Failed", 120)
    said = condition_of(status(world)["conditions"], "Ready")["message"]
    assert said.startswith("init SQL, statement 2: 1007: Can't create database 'app'; database exists; to run it")


def test_the_sandbox_reads_the_input_of_the_operators_script() -> None:
    told = Settings("basic-tidb", 4000, "10.%", "/tls", True, "/passwords", "/data/init.sql")
    assert told._asdict() == _settings(with_settings(told))
    assert None is _settings("import MySQLdb, time\nhost = 'v1.6-tidb'\n")


@pytest.mark.rule("2.4")
def test_the_wait_for_tidb_ends_with_a_message(world: OperatorWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("member.initializer.desired._MOST_TRIES", 5)
    cluster = sample("basic")
    cluster["spec"]["paused"] = True
    world.apply(cluster)
    apply_sample(world)
    world.run_until(lambda: status(world).get("phase") == "Failed", 120)
    said = condition_of(status(world)["conditions"], "Ready")["message"]
    assert said.startswith("wait for TiDB: basic-tidb:4000 was still closed after 5 tries, one a second; to run")

"""Manifests of other kinds, and values of the chart, that once failed or were silently ignored."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from apis.consent import parse_policy
from backup_manager.storage.checks import require_usable
from backup_manager.storage.errors import BadCredentials
from backup_manager.storage.location import Kind, Location
from backup_manager.storage.objects import open_storage
from cli.uninstall import FREE, HANGS, check
from kube.objects import Json
from kube.resources import BACKUPS, NAMESPACES, TIDB_CLUSTERS, TIDB_INITIALIZERS, TIDB_MONITORS
from rehearsal.operator import SETTINGS
from sandbox.dataplane.log_backup import task_names
from tests.backup_manager.storage.fakes import answering
from tests.cases.case_world import CaseWorld, of_case
from tests.chart.helm import Helm
from tests.operator_world import sample

pytestmark = pytest.mark.slow


@of_case("04-operator-image-of-a-mirror.values.yaml")
def test_the_chart_recognises_v16s_image_in_a_mirror(path: Path, tmp_path: Path) -> None:
    values: Json = yaml.safe_load(path.read_text(encoding="utf-8"))
    refused = Helm(tmp_path).refusal(values)
    assert f"operatorImage: {values['operatorImage']}: is v1.6's operator by its name" in refused


@of_case(
    "05-monitor-of-another-namespace.yaml",
    ours=("watcher", "orders", "shop"),
    shared=("basic", "advanced-tidb", "tidb-cluster"),
)
def test_a_monitor_whose_prometheus_cannot_see_the_pods_says_so(
    world: CaseWorld, documents: list[Json], expected: tuple[str, str, str]
) -> None:
    monitor, cluster, owner = expected
    world.apply_all(documents)
    world.run(30.0)
    assert ("False", "ReferenceNotAllowed") == world.conditions(TIDB_MONITORS, monitor)["Ready"][:2]
    world.consent(cluster, owner, "default")
    world.run(60.0)
    status, reason, message = world.conditions(TIDB_MONITORS, monitor)["Ready"]
    assert ("False", "PodsNotVisible") == (status, reason)
    assert f"Prometheus may not list the pods of {owner}" in message


@of_case("06-backup-azure-ad.yaml")
def test_reports_the_answer_of_azure_to_refused_credentials(
    documents: list[Json], monkeypatch: pytest.MonkeyPatch
) -> None:
    secret, backup = documents
    azblob = backup["spec"]["azblob"]
    place = Location(Kind.AZURE, azblob["container"], azblob["prefix"])
    told = {"error": "unauthorized_client", "error_description": "AADSTS700016: Application was not found. Trace ID: 1"}
    with answering(400, json.dumps(told)) as url:
        monkeypatch.setenv("AZURE_AUTHORITY_HOST", url)
        monkeypatch.setenv("AZURE_ALLOW_HTTP", "true")
        with pytest.raises(BadCredentials) as refused:
            require_usable(open_storage(place, secret["stringData"] | {"AZURE_STORAGE_ENDPOINT": url}))
    assert "Azure refuses the credentials: unauthorized_client: AADSTS700016: Application was not found." in str(
        refused.value
    )
    assert secret["stringData"]["AZURE_CLIENT_SECRET"] not in str(refused.value)


@of_case(
    "07-init-sql-insert.yaml",
    ours=("seeds.plants", [["1", "rose; wild", "NULL"], ["2", "fern", "NULL"], ["3", "moss", "30"]]),
    shared=("shopping.users", [["1", "Bob", "25"], ["2", "Eve", "32"]]),
)
def test_init_sql_that_tidb_accepts_runs(
    world: CaseWorld, documents: list[Json], expected: tuple[str, list[list[str]]]
) -> None:
    cluster = sample("basic")
    claims = [{"resources": {"requests": {"storage": "1Gi"}}}]
    cluster["spec"]["tiflash"] = {"baseImage": "pingcap/tiflash", "replicas": 1, "storageClaims": claims}
    world.apply_all([cluster, *documents])
    name = documents[0]["metadata"]["name"]
    world.run_until(lambda: "Ready" in world.conditions(TIDB_INITIALIZERS, name), 60)
    world.run_until(lambda: world.conditions(TIDB_INITIALIZERS, name)["Ready"][0] == "True", 60)
    pd = world.world.data_plane.pd_cluster("default", "basic")
    assert pd is not None
    table, rows = expected
    assert rows == [list(each) for each in (pd.tables.execute(f"SELECT * FROM {table}") or [])[1:]]
    assert [1] == list(pd.placement.of_tiflash.values())


@of_case(
    "08-namespace-of-a-log-backup-is-deleted.yaml", ours=("orders", "stream", "team"), shared=("small", "log1", "gone2")
)
def test_a_log_backup_ends_in_the_living_cluster_when_its_namespace_is_deleted(
    world: CaseWorld, documents: list[Json], expected: tuple[str, str, str]
) -> None:
    cluster, backup, author = expected
    world.apply_all(documents)
    world.consent(cluster, "live", author)
    world.run_until(lambda: world.serves(cluster, "live"), 60)
    pd = world.world.data_plane.pd_cluster("live", cluster)
    assert pd is not None
    world.run_until(lambda: task_names(pd.etcd, world.clock.now()) == [backup], 120)
    world.admin.delete(NAMESPACES, author)
    world.run_until(lambda: not task_names(pd.etcd, world.clock.now()), 300)
    world.run_until(lambda: world.admin.find(NAMESPACES, author) is None, 300)


@pytest.fixture
def permissive() -> Iterator[CaseWorld]:
    """An operator whose administrator permits references into all namespaces."""
    made = CaseWorld(settings=replace(SETTINGS, references=parse_policy("allow")))
    yield made
    made.stop()


@of_case("22-monitor-after-the-operator-has-gone.yaml")
def test_a_monitor_of_all_namespaces_is_named_before_the_operator_is_uninstalled_and_leaves_nothing(
    permissive: CaseWorld, documents: list[Json]
) -> None:
    world = permissive
    world.apply_all(documents)
    world.run(30.0)
    name, namespace = (documents[0]["metadata"][each] for each in ("name", "namespace"))
    report = check(world.admin)
    assert (HANGS, [f"kubectl delete tidbmonitor {name} -n {namespace}"]) == (
        report.code,
        [each.document["delete"] for each in report.held],
    )
    world.admin.delete(TIDB_MONITORS, name, namespace)
    world.run(30.0)
    assert world.admin.find(TIDB_MONITORS, name, namespace) is None
    assert FREE == check(world.admin).code


@of_case("23-backup-of-a-cluster-in-a-stuck-roll.yaml", ours=["stream", "full"], shared=["w-log", "w-full"])
def test_a_backup_of_a_cluster_that_does_not_serve_says_what_it_waits_for(
    world: CaseWorld, documents: list[Json], expected: list[str]
) -> None:
    author = documents[0]["metadata"]["namespace"]
    cluster = sample("basic") | {"metadata": {"name": "main", "namespace": "joined"}}
    keys = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s3-keys", "namespace": author}}
    account = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "tidb-backup-manager", "namespace": author},
    }
    world.apply_all([cluster, keys | {"stringData": {"access_key": "a", "secret_key": "b"}}, account])
    world.consent("main", "joined", author)
    world.run_until(lambda: world.serves("main", "joined"), 60)
    world.world.faults.image_missing("pingcap/tikv:v8.5.3")
    world.admin.patch(TIDB_CLUSTERS, "main", "joined", {"spec": {"tikv": {"version": "v8.5.3"}}})
    world.run(60.0)
    world.apply_all(documents)
    world.run(60.0)
    for name in expected:
        status, reason, message = world.conditions(BACKUPS, name, author)["Waiting"]
        assert ("True", "ClusterNotServing") == (status, reason)
        assert "TiKV" in message

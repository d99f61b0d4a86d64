"""`kubectl tidb diff`: the clusters in front of the flags, and what people see of a planned write."""

from collections.abc import Sequence
from typing import Any

import pytest

import cli.diff
from cli.failures import Failure
from cli.tidb.clusters import find_cluster
from cli.tidb.planned import concerns
from kube.dry_run import PlannedWrite
from kube.objects import Json
from kube.resources import CONFIG_MAPS, PERSISTENT_VOLUME_CLAIMS, PODS, SERVICES, STATEFUL_SETS
from member.labels import LAST_APPLIED
from tests.cli.tidb.typing_commands import Terminal
from tests.operator_world import OperatorWorld


def write(name: str, before: Json | None = None, after: Json | None = None, resource: str = "services") -> PlannedWrite:
    return PlannedWrite("patch", resource, "default", name, "", before, after)


def service(name: str, instance: str, kind: str = "ClusterIP", record: str = "") -> Json:
    labels, annotations = {"app.kubernetes.io/instance": instance}, {LAST_APPLIED: record}
    return {"metadata": {"name": name, "labels": labels, "annotations": annotations}, "spec": {"type": kind}}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Sequence[str]]]:
    """The namespaces and flags for which writes were planned; a write to each of two clusters is."""
    found: list[tuple[str, Sequence[str]]] = []

    def plan(namespace: str, flags: Sequence[str], *_: Any) -> cli.diff.Plan:
        found.append((namespace, flags))
        writes = [write(f"{name}-pd", None, service(f"{name}-pd", name)) for name in ("basic", "other")]
        return cli.diff.Plan(writes, [f"TidbCluster default/{name}" for name in ("basic", "other")])

    monkeypatch.setattr(cli.diff, "plan_writes", plan)
    return found


def test_shows_the_changes_of_the_clusters_that_the_user_names(
    terminal: Terminal, asked: list[tuple[str, Sequence[str]]]
) -> None:
    shown = terminal.type("diff", "basic", "--workers", "3", code=1)
    assert ("basic-pd" in shown, "other" in shown) == (True, False)
    assert "default/services/other-pd" in terminal.type("diff", "--workers", "3", code=1)
    assert [("default", ["--workers", "3"]), ("", ["--workers", "3"])] == asked


def test_refuses_a_cluster_that_does_not_exist(terminal: Terminal, asked: list[tuple[str, Sequence[str]]]) -> None:
    with pytest.raises(Failure, match="no TidbCluster or DMCluster basik in namespace default; there is basic"):
        terminal.type("diff", "basik")
    assert [] == asked


@pytest.mark.parametrize("resource", [STATEFUL_SETS, SERVICES, CONFIG_MAPS, PERSISTENT_VOLUME_CLAIMS, PODS])
def test_each_object_of_a_cluster_concerns_it(running: OperatorWorld, resource: Any) -> None:
    found = find_cluster(running.admin, "default", "basic")
    objects = [each for each in running.every(resource) if "basic" in each["metadata"]["name"]]
    assert objects
    for each in objects:
        named = write(each["metadata"]["name"], each, each, resource.plural)
        assert concerns(named, found), each["metadata"]["name"]


@pytest.mark.parametrize(
    ("planned", "expected"),
    [
        (write("basic", None, {"metadata": {"name": "basic"}}, "tidbclusters"), True),
        (write("basic", None, {"metadata": {"name": "basic"}}, "tidbmonitors"), False),
        (write("basic-2-pd", None, service("basic-2-pd", "basic-2")), False),
        (write("basic-pd-0", resource="pods"), True),
        (PlannedWrite("POST", "http://basic-pd.default:2379/pd/api/v1/config", "", "", "", None, None), True),
        (PlannedWrite("POST", "http://other-pd.default:2379/pd/api/v1/config", "", "", "", None, None), False),
    ],
)
def test_other_writes_do_not_concern_a_cluster(running: OperatorWorld, planned: PlannedWrite, expected: bool) -> None:
    assert expected is concerns(planned, find_cluster(running.admin, "default", "basic"))


def test_leaves_the_records_of_the_operator_out_unless_nothing_else_differs() -> None:
    before = service("basic-pd", "basic", record="the former spec")
    change = cli.diff.shown(write("basic-pd", before, service("basic-pd", "basic", "NodePort", "the new spec")))
    assert change.startswith("--- default/services/basic-pd (live)\n+++ default/services/basic-pd (patch)\n@@ ")
    assert ("+  type: NodePort" in change, "the new spec" in change) == (True, False)
    assert "the new spec" in cli.diff.shown(
        write("basic-pd", before, service("basic-pd", "basic", record="the new spec"))
    )


def test_shows_each_line_of_a_configuration() -> None:
    config = {"metadata": {"name": "basic-tidb-1"}, "data": {"config-file": '[log]\nlevel = "warn"\n'}}
    assert '+    level = "warn"\n' in cli.diff.shown(write("basic-tidb-1", None, config, "configmaps"))

"""What `tidb-operator run --sandbox` shows while a cluster comes up."""

import io

from rich.console import Console

from apis.decoding import decode
from apis.tidbcluster import TidbCluster
from cli.progress import LiveView, Row, rows
from kube.objects import Json


def _cluster(spec: Json, status: Json | None = None) -> TidbCluster:
    return decode({"metadata": {"name": "basic"}, "spec": spec, "status": status or {}}, TidbCluster)


def test_each_component_of_the_spec_has_a_row() -> None:
    spec: Json = {name: {"replicas": 1} for name in ("tidb", "tikv", "ticdc", "pd")}
    tc = _cluster(spec)
    assert ["pd", "tikv", "tidb", "ticdc", "cluster"] == [row.component for row in rows(tc)]
    assert ["tikv", "cluster"] == [row.component for row in rows(_cluster({"tikv": {"replicas": 1}}))]


def test_a_row_says_how_many_pods_are_ready_and_what_the_component_waits_for() -> None:
    waiting = {"type": "Progressing", "reason": "PodsNotReady", "message": "waiting for pod basic-tikv-2"}
    status = {"statefulSet": {"readyReplicas": 2}, "conditions": [waiting]}
    tc = _cluster({"tikv": {"replicas": 3}}, {"tikv": status})
    assert Row("tikv", 2, 3, "PodsNotReady: waiting for pod basic-tikv-2") == rows(tc)[0]


def test_a_component_that_nobody_has_looked_at_has_not_started() -> None:
    assert "pd        0/3 ready   not started" == str(rows(_cluster({"pd": {"replicas": 3}}))[0])


def test_brackets_in_a_message_are_no_styles() -> None:
    waiting = {"type": "Progressing", "reason": "PodsNotReady", "message": 'image "[/red] [bold" is none'}
    tc = _cluster({"tikv": {"replicas": 3}}, {"tikv": {"conditions": [waiting]}})
    screen = io.StringIO()
    with LiveView(Console(file=screen, force_terminal=True, width=120)) as view:
        view.show("[/x]", rows(tc))
    assert 'image "[/red] [bold" is none' in screen.getvalue()
    assert "[/x]" in screen.getvalue()

"""The output of `tidb-operator run --sandbox` while a cluster comes up."""

import io

from rich.console import Console

from apis.decoding import decode
from apis.tidbcluster import TidbCluster
from cli.progress import LiveView, PlainView, Row, rows
from kube.objects import Json


def _cluster(spec: Json, status: Json | None = None) -> TidbCluster:
    return decode({"metadata": {"name": "basic"}, "spec": spec, "status": status or {}}, TidbCluster)


def test_each_component_of_the_spec_has_a_row() -> None:
    spec: Json = {name: {"replicas": 1} for name in ("tidb", "tikv", "ticdc", "pd")}
    tc = _cluster(spec)
    assert ["pd", "tikv", "tidb", "ticdc", "cluster"] == [row.component for row in rows(tc)]
    assert ["tikv", "cluster"] == [row.component for row in rows(_cluster({"tikv": {"replicas": 1}}))]


def test_a_row_shows_the_ready_pods_and_what_the_component_waits_for() -> None:
    waiting = {"type": "Progressing", "reason": "PodsNotReady", "message": "waiting for pod basic-tikv-2"}
    status = {"statefulSet": {"readyReplicas": 2}, "conditions": [waiting]}
    tc = _cluster({"tikv": {"replicas": 3}}, {"tikv": status})
    assert Row("tikv", 2, 3, "PodsNotReady: waiting for pod basic-tikv-2") == rows(tc)[0]


def test_a_component_without_a_status_has_not_started() -> None:
    assert "pd        0/3 ready   not started" == str(rows(_cluster({"pd": {"replicas": 3}}))[0])


def test_brackets_in_a_message_are_printed_literally() -> None:
    waiting = {"type": "Progressing", "reason": "PodsNotReady", "message": 'image "[/red] [bold" is none'}
    tc = _cluster({"tikv": {"replicas": 3}}, {"tikv": {"conditions": [waiting]}})
    screen = io.StringIO()
    with LiveView(Console(file=screen, force_terminal=True, width=120)) as view:
        view.show("[/x]", rows(tc))
    assert 'image "[/red] [bold" is none' in screen.getvalue()
    assert "[/x]" in screen.getvalue()


def test_a_re_entered_plain_view_prints_only_changes() -> None:
    screen, spec = io.StringIO(), {"tikv": {"replicas": 3}}
    view = PlainView(Console(file=screen, width=120))
    for status in ({}, {}, {"tikv": {"statefulSet": {"readyReplicas": 1}}}):
        with view:
            view.show("basic", rows(_cluster(spec, status)))
    view.drop("basic")
    assert ["tikv 0/3", "cluster 0/1", "tikv 1/3", "deleted"] == [
        " ".join(line.split()[1:3]) for line in screen.getvalue().splitlines()
    ]


def test_a_re_entered_live_view_shows_the_last_state_without_dropped_objects() -> None:
    screen = io.StringIO()
    view = LiveView(Console(file=screen, force_terminal=True, width=120))
    with view:
        view.show("one", rows(_cluster({"tikv": {"replicas": 3}})))
        view.show("other", rows(_cluster({"tikv": {"replicas": 4}})))
    screen.truncate(0)
    with view:
        view.drop("one")
    assert "other" in screen.getvalue()
    assert "4" in screen.getvalue().rpartition("component")[2]
    assert "one" not in screen.getvalue().rpartition("component")[2]

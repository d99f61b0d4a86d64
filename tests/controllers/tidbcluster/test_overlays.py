"""Overlays in a running cluster (ADR 18)."""

import json

import pytest

from apis.overlays import overlay_annotation
from kube.objects import Json
from kube.resources import PODS, STATEFUL_SETS, TIDB_CLUSTERS
from ports.clock import FakeClock
from tests.operator_world import NAMESPACE, OperatorWorld
from tests.takeover.test_recordings import left_by_v16

pytestmark = pytest.mark.slow

KEY = overlay_annotation("tidb")
LINKS = {"template": {"spec": {"enableServiceLinks": False}}}


def annotate(world: OperatorWorld, overlay: object) -> None:
    text = json.dumps(overlay) if overlay is not None else None
    world.admin.patch(TIDB_CLUSTERS, "basic", NAMESPACE, {"metadata": {"annotations": {KEY: text}}})


def uids(world: OperatorWorld) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in world.every(PODS)}


def settle(world: OperatorWorld) -> None:
    world.run(5.0)
    world.run_until_ready(within=120.0)


def pod_spec(world: OperatorWorld) -> Json:
    found: Json = world.get(STATEFUL_SETS, "basic-tidb")["spec"]["template"]["spec"]
    return found


def test_an_overlay_restarts_its_component_and_its_withdrawal_does_again(basic: OperatorWorld) -> None:
    before, plain = uids(basic), pod_spec(basic)
    annotate(basic, LINKS)
    settle(basic)
    overlaid = uids(basic)
    assert plain | {"enableServiceLinks": False} == pod_spec(basic)
    assert {"basic-tidb-0"} == {name for name, uid in overlaid.items() if uid != before[name]}
    annotate(basic, None)
    settle(basic)
    assert plain == pod_spec(basic)
    assert {"basic-tidb-0"} == {name for name, uid in uids(basic).items() if uid != overlaid[name]}


def test_a_protected_field_is_refused_and_nothing_is_written(basic: OperatorWorld) -> None:
    before = uids(basic)
    annotate(basic, {"template": {"spec": {"subdomain": "x"}}})
    basic.forget()
    basic.run(65.0)
    assert f'metadata.annotations["{KEY}"].template.spec.subdomain: "x": decides' in basic.condition("Ready")["message"]
    assert ([], before) == (
        [each for each in basic.writes() if " tidbclusters" not in each and " events" not in each],
        uids(basic),
    )
    annotate(basic, {})
    settle(basic)
    assert before == uids(basic)


def test_a_misspelled_field_is_named_and_restarts_a_pod_once(basic: OperatorWorld) -> None:
    annotate(basic, {"template": {"spec": {"enableServicelinks": False}}})
    settle(basic)
    assert "did you mean enableServiceLinks?" in basic.condition("FieldsIgnored")["message"]
    basic.forget()
    before = uids(basic)
    basic.run(180.0)
    assert ([], before) == (basic.writes(), uids(basic))


def test_a_claims_overlay_of_a_running_component_is_refused(basic: OperatorWorld) -> None:
    key = overlay_annotation("pd")
    overlay = {"volumeClaimTemplates": [{"metadata": {"name": "pd", "labels": {"team": "a"}}}]}
    before = uids(basic)
    basic.admin.patch(TIDB_CLUSTERS, "basic", NAMESPACE, {"metadata": {"annotations": {key: json.dumps(overlay)}}})
    basic.run(35.0)
    assert "FixedField" == basic.reason()
    assert before == uids(basic)


def test_an_overlay_that_v1_6_ignored_waits_for_the_users_next_change(clock: FakeClock) -> None:
    taken = left_by_v16("basic", clock)
    before, world = taken.pods(), taken.world
    overlay = {"metadata": {"annotations": {KEY: json.dumps(LINKS)}}}
    world.admin.patch(TIDB_CLUSTERS, taken.name, taken.namespace, overlay)
    world.run(45.0)
    assert before == taken.pods()
    world.admin.patch(TIDB_CLUSTERS, taken.name, taken.namespace, {"spec": {"tidb": {"labels": {"team": "a"}}}})
    world.run(60.0)
    now = taken.pods()
    assert {"tidb"} == {name.split("-")[1] for name, uid in before.items() if now.get(name) != uid}
    assert (
        False
        is taken.live("StatefulSet", f"{taken.name}-tidb", taken.namespace)["spec"]["template"]["spec"][
            "enableServiceLinks"
        ]
    )
    world.stop()

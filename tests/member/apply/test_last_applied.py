"""The record of the last application, and differences from it (objects.md 2.3, 11)."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from kube.objects import Json
from kube.semantic import merge_patch
from member.apply.claim_templates import sizes_differ, unwanted_mounts
from member.apply.foreign_edits import foreign_edit
from member.apply.last_applied import (
    applied,
    compare_stateful_set,
    fixed_field_change,
    missing_volumes,
    read_record,
    stamped,
    with_fixed_fields,
    with_running_template,
    with_template_of,
)
from member.objects.services import keep_allocated
from member.pd import desired as pd
from member.tidb import desired as tidb
from tests.member.clusters import cluster, container_of

LAST_APPLIED = "pingcap.com/last-applied-configuration"


def _desired(**fields: Any) -> Json:
    return pd.stateful_set(cluster(**fields), "cm")


def _live(desired: Json) -> Json:
    """A stamped StatefulSet as the API server stores it."""
    live: Json = json.loads(json.dumps(stamped(desired)))
    live["spec"] |= {"revisionHistoryLimit": 10}
    live["spec"]["template"]["spec"] |= {"schedulerName": "default-scheduler", "securityContext": {}}
    return live


def _with_record(live: Json, record: Json) -> Json:
    live["metadata"]["annotations"][LAST_APPLIED] = json.dumps(record)
    return live


@pytest.mark.rule("objects-11.1")
def test_the_record_is_the_desired_spec_in_json() -> None:
    desired = _desired()
    made = stamped(desired)
    assert desired["spec"] == json.loads(made["metadata"]["annotations"][LAST_APPLIED])
    assert desired["spec"] == made["spec"]


@pytest.mark.parametrize("text", [None, "", "{", "[]", "null"])
@pytest.mark.rule("objects-11.4")
def test_an_unreadable_record_is_none(text: str | None) -> None:
    annotations = {} if text is None else {LAST_APPLIED: text}
    assert read_record({"metadata": {"annotations": annotations}}) is None


@pytest.mark.parametrize("metadata", ["[]", "5", '"x"', '{"labels":5}', '{"annotations":[{}]}'])
@pytest.mark.rule("objects-11.4")
def test_a_record_whose_metadata_is_of_another_shape_is_none(metadata: str) -> None:
    assert read_record({"metadata": {"annotations": {LAST_APPLIED: f'{{"metadata":{metadata}}}'}}}) is None


@pytest.mark.slow
@pytest.mark.rule("objects-11.4")
def test_a_record_that_others_have_bent_anywhere_is_none_or_is_compared_with() -> None:
    desired, service = _desired(), pd.services(cluster())[0]
    for record in _bent(stamped(desired)):
        live = _with_record(_live(desired), record)
        change = compare_stateful_set(live, desired)
        assert change.unrecorded == (read_record(live) is None)
        for kept in (with_fixed_fields(live, desired), with_running_template(live, desired)):
            missing_volumes(live, with_template_of(live, kept))
        foreign_edit(live)
        sizes_differ(live, desired)
        unwanted_mounts(live, desired)
        assert (read_record(live) is None) == (applied(live) is None)
    for record in _bent(stamped(service)):
        live = _with_record(json.loads(json.dumps(stamped(service))), record)
        merge_patch(live, stamped(service, live), applied(live) or {})


_BENT: tuple[Any, ...] = (None, 5, "x", [], {}, [None], [{}], [[]], {"name": []}, [{"name": {}}])


def _bent(stamped_object: Json) -> Iterator[Json]:
    """The record of an object, each time with another value in another place."""
    text = stamped_object["metadata"]["annotations"][LAST_APPLIED]
    whole = json.loads(text) | {"metadata": {"labels": ["a"], "annotations": ["b"]}}
    for path in _paths(whole):
        for value in _BENT:
            record = json.loads(json.dumps(whole))
            inner = record
            for step in path[:-1]:
                inner = inner[step]
            inner[path[-1]] = value
            yield record


def _paths(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    steps = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for step, inner in steps:
        yield (*path, step)
        yield from _paths(inner, (*path, step))


@pytest.mark.rule("objects-2.3")
def test_only_requested_metadata_is_recorded_beside_the_spec() -> None:
    wished = {"service": {"labels": {"own": "x"}, "annotations": {"a": "b"}}}
    record = json.loads(stamped(pd.services(cluster(pd=wished))[0])["metadata"]["annotations"][LAST_APPLIED])
    assert {"labels": ["own"], "annotations": ["a"]} == record["metadata"]
    plain = json.loads(stamped(pd.services(cluster())[0])["metadata"]["annotations"][LAST_APPLIED])
    assert "metadata" not in plain


@pytest.mark.rule("objects-2.3")
def test_a_withdrawn_wish_is_removed_and_foreign_keys_stay() -> None:
    live = stamped(pd.services(cluster(pd={"service": {"annotations": {"a": "b"}, "labels": {"own": "x"}}}))[0])
    live["metadata"]["annotations"]["cloud/foreign"] = "y"
    desired = stamped(pd.services(cluster())[0], live)
    patch = merge_patch(live, desired, applied(live))
    assert patch is not None
    record = patch["metadata"]["annotations"].pop(LAST_APPLIED)
    assert {"metadata": {"annotations": {"a": None}, "labels": {"own": None}}} == patch
    assert "metadata" not in json.loads(record)


@pytest.mark.rule("objects-11.1")
def test_a_record_in_other_notation_stays() -> None:
    desired = _desired()
    noisy = json.loads(json.dumps(desired["spec"]))
    noisy["template"]["metadata"]["creationTimestamp"] = None
    noisy["template"]["spec"]["containers"][0]["resources"] = {}
    noisy["volumeClaimTemplates"][0] |= {"status": {}}
    noisy["volumeClaimTemplates"][0]["spec"]["resources"]["requests"]["storage"] = "1024Mi"
    live = _with_record(_live(desired), noisy)
    kept = stamped(desired, live)["metadata"]["annotations"][LAST_APPLIED]
    assert live["metadata"]["annotations"][LAST_APPLIED] == kept
    assert compare_stateful_set(live, desired).nothing


@pytest.mark.rule("objects-2.3")
def test_node_ports_in_a_record_of_v16_are_no_difference() -> None:
    desired = tidb.services(cluster(tidb={"service": {"type": "NodePort"}}))[0]
    live = json.loads(json.dumps(desired))
    for number, port in enumerate(live["spec"]["ports"]):
        port["nodePort"] = 30000 + number
    live = stamped(live)
    assert merge_patch(live, stamped(keep_allocated(desired, live), live), applied(live)) is None
    ours = stamped(desired) | {"spec": live["spec"]}
    assert merge_patch(ours, stamped(keep_allocated(desired, ours), ours), applied(ours)) is None


@pytest.mark.rule("objects-11.5")
def test_nothing_differs_after_creation() -> None:
    difference = compare_stateful_set(_live(_desired()), _desired())
    assert (True, None) == (difference.nothing, difference.first)


@pytest.mark.parametrize(
    ("wish", "field", "path", "old", "new"),
    [
        (
            {"version": "v9"},
            "template_change",
            "spec.template.spec.containers[0].image",
            "pingcap/pd:v8.5.0",
            "pingcap/pd:v9",
        ),
        (
            {"limits": {"cpu": "1"}},
            "template_change",
            "spec.template.spec.containers[0].resources",
            None,
            {"limits": {"cpu": "1"}},
        ),
        ({"labels": {"own": "x"}}, "template_change", "spec.template.metadata.labels.own", None, "x"),
        ({"annotations": {"a": "b"}}, "template_change", "spec.template.metadata.annotations.a", None, "b"),
        ({"replicas": 5}, "replicas_change", "spec.replicas", 3, 5),
        (
            {"statefulSetUpdateStrategy": "OnDelete"},
            "strategy_change",
            "spec.updateStrategy.type",
            "RollingUpdate",
            "OnDelete",
        ),
    ],
)
@pytest.mark.rule("objects-11.4")
def test_a_difference_names_the_first_field(wish: Json, field: str, path: str, old: object, new: object) -> None:
    change = getattr(compare_stateful_set(_live(_desired()), _desired(pd=wish)), field)
    assert (path, old, new) == (change.path, change.old, change.new)


@pytest.mark.rule("objects-11.1")
def test_order_matters_where_kubernetes_reads_it_and_equal_quantities_do_not() -> None:
    live = _live(_desired(pd={"limits": {"memory": "1Gi"}, "env": [{"name": "A"}, {"name": "B"}]}))
    same = _desired(pd={"limits": {"memory": "1024Mi"}, "env": [{"name": "A"}, {"name": "B"}]})
    assert compare_stateful_set(live, same).template_change is None
    same = _desired(pd={"limits": {"memory": "1Gi"}, "env": [{"name": "B"}, {"name": "A"}]})
    assert compare_stateful_set(live, same).template_change is None
    variables = [{"name": "A", "value": "1"}, {"name": "B", "value": "$(A)"}]
    live = _live(_desired(pd={"env": variables}))
    change = compare_stateful_set(live, _desired(pd={"env": variables[::-1]})).template_change
    assert 'spec.template.spec.containers[0].env[5].name: "A" → "B"' == str(change)


@pytest.mark.rule("objects-11.5")
def test_owner_generation_sync_timestamp_and_foreign_keys_are_ignored() -> None:
    live = _live(_desired())
    live["metadata"]["annotations"] |= {
        "tidb.pingcap.com/owner-generation": "7",
        "tidb.pingcap.com/sync-timestamp": "t",
        "foreign": "x",
    }
    live["metadata"]["labels"]["foreign"] = "x"
    assert compare_stateful_set(live, _desired()).nothing


@pytest.mark.rule("objects-11.5")
def test_own_metadata_is_repaired_and_withdrawn() -> None:
    slots = {"pd.tidb.pingcap.com/delete-slots": "[1]"}
    change = compare_stateful_set(_live(_desired(annotations=slots)), _desired()).metadata_change
    assert 'metadata.annotations[delete-slots]: "[1]" → null' == str(change)
    live = _live(_desired())
    live["metadata"]["labels"]["app.kubernetes.io/component"] = "x"
    assert compare_stateful_set(live, _desired()).metadata_change is not None


@pytest.mark.rule("objects-11.5")
def test_notices_manual_changes_of_replicas_and_strategy() -> None:
    live = _live(_desired())
    live["spec"]["replicas"] = 1
    live["spec"]["updateStrategy"] = {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
    difference = compare_stateful_set(live, _desired())
    assert "spec.replicas: 1 → 3" == str(difference.replicas_change)
    assert "spec.updateStrategy.rollingUpdate.partition: 0 → 3" == str(difference.strategy_change)


@pytest.mark.rule("objects-11.5")
def test_a_stateful_set_without_a_controller_is_adopted() -> None:
    live = _live(_desired())
    live["metadata"]["ownerReferences"] = []
    difference = compare_stateful_set(live, _desired())
    assert (True, None, False) == (difference.orphan, difference.first, difference.nothing)


@pytest.mark.rule("objects-3.5")
def test_without_a_record_the_live_template_decides() -> None:
    live = _live(_desired())
    del live["metadata"]["annotations"]
    difference = compare_stateful_set(live, _desired())
    assert (None, True) == (difference.first, difference.unrecorded)

    assert _desired() == with_running_template(live, _desired())
    change = compare_stateful_set(live, _desired(pd={"version": "v9"})).template_change
    assert change is not None
    assert "spec.template.spec.containers[0].image" == change.path


@pytest.mark.parametrize("field", ["apiVersion", "kind", "name", "controller"])
@pytest.mark.rule("R27")
def test_an_owner_that_is_named_otherwise_is_named_again(field: str) -> None:
    desired = _desired()
    live = _live(_desired())
    assert compare_stateful_set(live, desired).nothing
    live["metadata"]["ownerReferences"][0][field] = "other"
    assert not compare_stateful_set(live, desired).nothing


@pytest.mark.rule("objects-3.4")
def test_topology_selectors_of_v16_stay_until_another_change() -> None:
    fields: dict[str, Any] = {
        "labels": {"app.kubernetes.io/instance": "prod"},
        "topologySpreadConstraints": [
            {"topologyKey": "zone"},
            {"topologyKey": "rack", "matchLabels": {"app.kubernetes.io/instance": "mine"}},
        ],
    }
    desired = _desired(**fields)
    old = json.loads(json.dumps(desired["spec"]))
    selector = old["template"]["spec"]["topologySpreadConstraints"][0]["labelSelector"]["matchLabels"]
    selector["app.kubernetes.io/instance"] = "demo"
    live = _with_record(_live(desired), old)
    kept = with_running_template(live, desired)
    assert compare_stateful_set(live, kept).nothing
    assert old["template"] == kept["spec"]["template"]
    newer = _desired(**fields, version="v9")
    assert compare_stateful_set(live, newer).template_change is not None
    assert newer == with_running_template(live, newer)


@pytest.mark.parametrize("is_recorded", [True, False], ids=["v1.6 wrote it last", "v1.0 did"])
@pytest.mark.rule("objects-11.5")
def test_v10_records_in_a_pod_template_stay_and_are_not_compared(is_recorded: bool) -> None:
    live = _live(_desired())
    record = json.loads(json.dumps(_desired()["spec"]))
    for spec in (live["spec"], record)[: 1 + is_recorded]:
        spec["template"]["metadata"].setdefault("annotations", {})[LAST_APPLIED] = "{}"
    live = _with_record(live, record)
    assert compare_stateful_set(live, with_running_template(live, _desired())).nothing
    assert foreign_edit(live) is None
    for desired in (_desired(), _desired(version="v9")):
        kept = with_running_template(live, desired)
        assert {LAST_APPLIED: "{}"}.items() <= kept["spec"]["template"]["metadata"]["annotations"].items()
        assert desired["spec"]["template"]["spec"] == kept["spec"]["template"]["spec"]
        patch = merge_patch(live, stamped(kept, live), applied(live)) or {"spec": {"template": {}}}
        assert "metadata" not in patch["spec"]["template"]
    annotated = with_running_template(live, _desired(pd={"annotations": {"a": "b"}}))
    change = compare_stateful_set(live, annotated).template_change
    assert change is not None
    assert "spec.template.metadata.annotations.a" == change.path
    live["metadata"]["annotations"] = {}
    assert compare_stateful_set(live, with_running_template(live, _desired())).first is None


@pytest.mark.rule("objects-11.5")
def test_a_mount_without_a_volume_is_found_before_it_stops_a_pod() -> None:
    live = _live(_desired())
    assert [] == missing_volumes(live, _desired())
    volume = {"name": "log", "storageSize": "1Gi", "mountPath": "/log"}
    desired = _desired(pd={"storageVolumes": [volume]})
    assert ["pd-log"] == missing_volumes(live, desired)
    assert "pd-log" == container_of(desired, "pd")["volumeMounts"][-1]["name"]


@pytest.mark.rule("objects-10.1")
def test_the_record_of_a_deployment_is_its_pod_spec() -> None:
    annotations = {"pingcap.com/last-applied-podtemplate": '{"containers":[]}'}
    live = {"kind": "Deployment", "metadata": {"annotations": annotations}}
    assert {"spec": {"template": {"spec": {"containers": []}}}} == applied(live)
    assert applied({"kind": "Deployment", "metadata": {}}) is None
    broken = {"pingcap.com/last-applied-podtemplate": "{"}
    assert applied({"kind": "Deployment", "metadata": {"annotations": broken}}) is None
    assert applied({"kind": "Service", "metadata": {}}) is None


@pytest.mark.rule("objects-11.5")
def test_an_immutable_field_of_a_stateful_set_stays_and_is_named() -> None:
    live = _live(_desired())
    assert fixed_field_change(live, _desired()) is None
    bigger = _desired(pd={"requests": {"storage": "2Gi"}})
    assert 'spec.volumeClaimTemplates[0].spec.resources.requests.storage: "1Gi" → "2Gi"' == str(
        fixed_field_change(live, bigger)
    )
    kept = with_fixed_fields(live, bigger)
    assert _desired()["spec"]["volumeClaimTemplates"] == kept["spec"]["volumeClaimTemplates"]
    assert fixed_field_change(live, kept) is None


@pytest.mark.parametrize("fields", [{"storageClassName": "policy"}, {"resources": {"requests": {"storage": "5Gi"}}}])
@pytest.mark.rule("objects-11.5")
def test_a_change_of_volumes_by_admission_is_no_change_of_the_spec(fields: Json) -> None:
    live = _live(_desired())
    live["spec"]["volumeClaimTemplates"][0]["spec"] |= fields
    assert not sizes_differ(live, _desired())
    assert fixed_field_change(live, _desired()) is None

    bigger = _desired(pd={"requests": {"storage": "9Gi"}})
    assert sizes_differ(live, bigger)
    assert fixed_field_change(live, bigger) is not None


@pytest.mark.rule("objects-11.5")
def test_a_policy_for_the_start_of_pods_is_no_change_of_the_spec() -> None:
    live = _live(_desired())
    live["spec"]["podManagementPolicy"] = "OrderedReady"
    assert fixed_field_change(live, _desired()) is None
    del live["metadata"]["annotations"][LAST_APPLIED]
    assert "spec.podManagementPolicy" in str(fixed_field_change(live, _desired()))

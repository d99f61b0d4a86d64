"""Foreign edits of a StatefulSet are distinguished from additions of the API server and admission webhooks."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from kube.objects import Json
from member.apply.foreign_edits import admitted_template, foreign_edit, with_written_generation
from member.apply.last_applied import stamped
from member.labels import ADMITTED_TEMPLATE, with_annotation
from member.tikv import desired as tikv
from sandbox.apiserver.defaults import apply_defaults
from tests.member.clusters import cluster, container_of
from tests.member.recordings import Recording, as_applied, identity
from tests.member.test_recordings import COVERED

LAST_APPLIED = "pingcap.com/last-applied-configuration"

_RICH: dict[str, Any] = {
    "limits": {"cpu": "1"},
    "requests": {"storage": "1Gi"},
    "initContainers": [{"name": "first", "image": "busybox"}],
    "additionalContainers": [{"name": "beside", "image": "busybox:1", "ports": [{"containerPort": 1}]}],
    "readinessProbe": {"type": "tcp"},
    "hostNetwork": True,
    "serviceAccount": "tikv",
    "lifecycle": {"preStop": {"httpGet": {"port": 1}}},
    "additionalVolumes": [{"name": "scratch"}],
}
"""Fields that the API server completes."""


def live(*, written: bool = True, **fields: Any) -> Json:
    """TiKV's StatefulSet as the API server has it after our write."""
    made: Json = json.loads(json.dumps(stamped(tikv.stateful_set(cluster(tikv=fields), "cm"))))
    apply_defaults("statefulsets.apps", made)
    made["metadata"] |= {"uid": "u", "generation": 3}
    if written:
        made = with_written_generation(made | {"metadata": made["metadata"] | {"generation": 4}}, made, {"spec": {}})
        made["metadata"]["generation"] = 3
    return made


def edited(body: Json, edit: Callable[[Json], object]) -> Json:
    """The StatefulSet after a foreign edit."""
    edit(body["spec"])
    body["metadata"]["generation"] += 1
    return body


def pod_of(spec: Json) -> Json:
    pod: Json = spec["template"]["spec"]
    return pod


EDITS: dict[str, tuple[Callable[[Json], object], str]] = {
    "image": (
        lambda spec: pod_of(spec)["containers"][0].update(image="x"),
        'spec.template.spec.containers[0].image: "pingcap/tikv:v8.5.0" → "x"',
    ),
    "restart": (
        lambda spec: spec["template"]["metadata"]["annotations"].update({"kubectl.kubernetes.io/restartedAt": "now"}),
        'spec.template.metadata.annotations.kubectl.kubernetes.io/restartedAt: null → "now"',
    ),
    "label": (
        lambda spec: spec["template"]["metadata"]["labels"].update(path="/"),
        'spec.template.metadata.labels.path: null → "/"',
    ),
    "variable": (
        lambda spec: pod_of(spec)["containers"][0]["env"].append({"name": "A", "value": "b"}),
        "spec.template.spec.containers[0].env changed",
    ),
    "resources": (
        lambda spec: pod_of(spec)["containers"][0].update(resources={"limits": {"cpu": "9"}}),
        'spec.template.spec.containers[0].resources.limits.cpu: null → "9"',
    ),
    "node": (
        lambda spec: pod_of(spec).update(nodeSelector={"disk": "ssd"}),
        'spec.template.spec.nodeSelector.disk: null → "ssd"',
    ),
    "grace": (
        lambda spec: pod_of(spec).update(terminationGracePeriodSeconds=0),
        "spec.template.spec.terminationGracePeriodSeconds: null → 0",
    ),
    "pull policy": (
        lambda spec: pod_of(spec)["containers"][0].update(imagePullPolicy="Never"),
        'spec.template.spec.containers[0].imagePullPolicy: "IfNotPresent" → "Never"',
    ),
    "claims": (
        lambda spec: spec["persistentVolumeClaimRetentionPolicy"].update(whenScaled="Delete"),
        'spec.persistentVolumeClaimRetentionPolicy.whenScaled: null → "Delete"',
    ),
    "ordinals": (lambda spec: spec.update(ordinals={"start": 1}), "spec.ordinals.start: null → 1"),
    "partition": (
        lambda spec: spec["updateStrategy"]["rollingUpdate"].update(partition=1),
        "spec.updateStrategy.rollingUpdate.partition: 3 → 1",
    ),
}


@pytest.mark.parametrize("which", EDITS)
def test_names_a_foreign_edit(which: str) -> None:
    edit, told = EDITS[which]
    found = foreign_edit(edited(live(), edit))
    assert found is not None
    assert told == str(found.change)


def test_additions_of_the_api_server_are_no_edit() -> None:
    assert None is foreign_edit(edited(live(**_RICH), lambda _: None))
    assert None is foreign_edit(live(written=False, **_RICH))


def test_a_change_that_came_with_our_write_is_no_edit() -> None:
    """An admission webhook would do it again."""
    mutated = live()
    container_of(mutated, "tikv")["image"] = "mirror.example.com/tikv:v8.5.0"
    mutated["spec"]["template"]["metadata"]["labels"]["webhook"] = "on"
    assert None is foreign_edit(mutated)
    mutated["metadata"]["generation"] += 1
    assert None is not foreign_edit(mutated)


def test_a_change_of_the_template_by_admission_is_no_edit_whichever_client_writes_later() -> None:
    mutated = live()
    mutated["spec"]["template"]["metadata"]["labels"]["webhook"] = "on"
    made = admitted_template(mutated)
    assert made is not None
    mutated = with_annotation(mutated, ADMITTED_TEMPLATE, made)
    mutated["metadata"]["generation"] += 1
    mutated["spec"]["revisionHistoryLimit"] = 3
    found = foreign_edit(mutated)
    assert found is not None
    assert not found.hits_pods
    mutated["spec"]["template"]["metadata"]["labels"]["webhook"] = "off"
    found = foreign_edit(mutated)
    assert found is not None
    assert found.hits_pods


def test_of_a_template_that_is_as_it_was_written_nothing_is_remembered() -> None:
    assert None is admitted_template(live())


def test_detects_a_stateful_set_that_another_client_recreated() -> None:
    copy = edited(live(), lambda spec: spec["template"]["metadata"]["labels"].update(more="x"))
    copy["metadata"] |= {"uid": "another", "generation": 3}
    assert None is not foreign_edit(copy)


def test_without_a_recorded_generation_additions_that_pods_run_stay() -> None:
    body = edited(live(written=False), EDITS["restart"][0])
    body["status"] = {"currentRevision": "a", "updateRevision": "a"}
    assert None is foreign_edit(body)
    body["status"]["updateRevision"] = "b"
    assert None is not foreign_edit(body)


def test_a_partition_that_restarts_fewer_pods_is_no_matter() -> None:
    assert None is foreign_edit(
        edited(live(), lambda spec: spec["updateStrategy"]["rollingUpdate"].update(partition=9))
    )
    assert None is foreign_edit(edited(live(), lambda spec: spec.update(updateStrategy={"type": "OnDelete"})))


@pytest.mark.parametrize("name", COVERED)
@pytest.mark.parametrize("note", [False, True])
@pytest.mark.rule("3.5")
def test_a_stateful_set_of_v16_has_no_foreign_edits(name: str, note: bool) -> None:
    recording = Recording(name)
    ours = recording.built()
    for recorded in recording.items:
        if recorded["kind"] == "StatefulSet" and identity(recorded) in ours:
            body: Json = json.loads(json.dumps(recorded))
            record = json.dumps(as_applied(recorded, ours[identity(recorded)]))
            body["metadata"].setdefault("annotations", {})[LAST_APPLIED] = record
            if note:
                # with this every addition counts
                body = with_written_generation(body)
            assert None is foreign_edit(body)

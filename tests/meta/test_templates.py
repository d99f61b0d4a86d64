"""Metadata from a pod's template, and the pods of a StatefulSet (reliability.md R27)."""

from typing import Any

import msgspec
import pytest

from kube.objects import Json, Object
from member.labels import CONTROLLER_REVISION_HASH
from meta.metadata import DesiredMetadata
from meta.templates import of_template

SELECTED = {"app": "demo"}
TEMPLATE: Json = {
    "metadata": {"labels": SELECTED | {"team": "a"}, "annotations": {"port": "1"}},
    "spec": {"containers": [{"name": "tikv", "image": "tikv:1", "volumeMounts": [{"name": "d", "mountPath": "/d"}]}]},
}
SET: Json = {
    "metadata": {"name": "demo-tikv", "uid": "set", "generation": 2},
    "spec": {"serviceName": "peer", "selector": {"matchLabels": SELECTED}, "template": TEMPLATE},
    "status": {"observedGeneration": 2, "currentRevision": "new", "updateRevision": "new"},
}
ALL = DesiredMetadata(SELECTED | {"team": "a", CONTROLLER_REVISION_HASH: "new"}, {"port": "1"})


def _pod(
    image: str = "tikv:1", owner: str | None = "set", revision: str = "", spec: Json | None = None, **meta: Any
) -> Object:
    token = {"name": "token", "mountPath": "/token"}
    container = TEMPLATE["spec"]["containers"][0] | {"image": image}
    container["volumeMounts"] = [*container["volumeMounts"], token]
    reference = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "x", "uid": owner, "controller": True}
    tree: Json = {
        "metadata": {
            "name": "demo-tikv-0",
            "generateName": "demo-tikv-",
            "labels": {CONTROLLER_REVISION_HASH: revision},
            "ownerReferences": [reference] if owner else [],
            **meta,
        },
        "spec": {"hostname": "demo-tikv-0", "subdomain": "peer", "containers": [container], "volumes": [token]}
        | (spec or {}),
    }
    return Object(msgspec.json.encode(tree))


def known(_: Json) -> set[str]:
    """The existing revisions."""
    return {"new", "taken-back"}


@pytest.mark.parametrize("owner", ["set", None], ids=["controlled", "let go"])
@pytest.mark.rule("R27")
def test_a_pod_of_the_newest_revision_has_all_of_its_template(owner: str | None) -> None:
    assert ALL == of_template({"set": SET}, _pod(owner=owner, revision="new"), known)
    assert ALL == of_template({"set": SET}, _pod(owner=owner, revision=""), known)
    assert ALL == of_template({"set": SET}, _pod(owner=owner, revision="strange"), known)


@pytest.mark.parametrize(
    ("pod", "changed"),
    [
        (_pod(image="tikv:2"), {}),
        (_pod(), {"currentRevision": "old"}),
        (_pod(revision="taken-back"), {}),
        (_pod(spec={"nodeSelector": {"no-such": "label"}}), {}),
        (_pod(revision="new"), {"observedGeneration": 1}),
    ],
    ids=[
        "is made of something else",
        "may be of another revision",
        "tells another revision",
        "runs elsewhere",
        "the newest revision is not known",
    ],
)
@pytest.mark.rule("R27")
def test_a_pod_of_another_revision_has_the_labels_of_the_selector(pod: Object, changed: Json) -> None:
    stateful_set = SET | {"status": SET["status"] | changed}
    assert DesiredMetadata(SELECTED) == of_template({"set": stateful_set}, pod, known)


@pytest.mark.parametrize("pod", [_pod(owner="other"), _pod(owner=None, generateName="others-")])
@pytest.mark.rule("R27")
def test_a_foreign_pod_gets_nothing_from_the_template(pod: Object) -> None:
    assert DesiredMetadata() == of_template({"set": SET}, pod, known)

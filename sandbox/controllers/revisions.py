"""ControllerRevisions: the history of a StatefulSet's pod templates."""

import hashlib

import msgspec

from kube.objects import Json
from kube.resources import ADVANCED_STATEFUL_SETS
from sandbox.owners import controller_reference

HASH_LABEL = "controller-revision-hash"
_REVISION_HASH_LABEL = "controller.kubernetes.io/hash"
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_LENGTH = 10


def template_hash(template: Json) -> str:
    """A short hash of a pod template, usable in names and labels."""
    digest = hashlib.blake2b(msgspec.json.encode(template, order="deterministic"), digest_size=_LENGTH).digest()
    return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest)


def name_of_revision(workload: Json) -> str:
    """The name of the revision of a workload's current template."""
    return f"{workload['metadata']['name']}-{template_hash(_revised(workload))}"


def _revised(workload: Json) -> Json:
    """The template as the workload's controller keeps it."""
    template: Json = workload["spec"]["template"]
    if workload["apiVersion"] == ADVANCED_STATEFUL_SETS.api_version:
        # its controller is older than Kubernetes 1.34, which writes no empty timestamps: the revisions differ
        return template | {"metadata": template["metadata"] | {"creationTimestamp": None}}
    return template


def revision_of(workload: Json, number: int) -> Json:
    """The revision object of a workload's current template."""
    template = _revised(workload)
    meta = workload["metadata"]
    short = template_hash(template)
    labels = (template["metadata"].get("labels") or {}) | {_REVISION_HASH_LABEL: short}
    annotations = {"annotations": meta["annotations"]} if meta.get("annotations") else {}
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": f"{meta['name']}-{short}",
            "namespace": meta["namespace"],
            "labels": labels,
            **annotations,
            "ownerReferences": [controller_reference(workload)],
        },
        "data": _ordered({"spec": {"template": template | {"$patch": "replace"}}}),
        "revision": number,
    }


def _ordered(data: Json) -> Json:
    """The data with sorted keys, as controllers in Go write it.

    A real API server stores its bytes. It sorts them in every patch, e.g. of the garbage collector, and would then
    refuse data that has changed.
    """
    ordered: Json = msgspec.json.decode(msgspec.json.encode(data, order="sorted"))
    return ordered


def template_of(revision: Json) -> Json:
    """The pod template in a revision."""
    template: Json = {key: value for key, value in revision["data"]["spec"]["template"].items() if key != "$patch"}
    return template

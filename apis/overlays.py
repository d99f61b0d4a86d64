"""Overlays: fields of Kubernetes that pods and volume claims may have, and the spec of a cluster has not (ADR 18).

The annotation `tidb.pingcap.com/<component>-overlay` of a cluster holds them as JSON, in the form of a StatefulSet's
spec. A field that the spec has, or that decides which pod runs where and with which data, is refused.
"""

import re
from collections.abc import Iterator, Mapping
from typing import TypeAlias, TypeVar

import msgspec
from msgspec import field, structs

from apis.accessor import Component, find
from apis.cluster import Cluster
from apis.components import component_names
from apis.decoding import decode, without_nulls
from apis.embedded import ClaimMetadata, ClaimSpec, PodSpec
from apis.model import Json, Model
from apis.model_types import step
from apis.problem import InvalidField, Problem
from apis.unknown_fields import unknown_fields
from ports.structs import UNREADABLE

_KEY = re.compile(r"tidb\.pingcap\.com/(.+)-overlay")

_C = TypeVar("_C", bound=Cluster)

_Refusals: TypeAlias = Mapping[str, str]
"""Why a field is refused, and the way out; `*` is any other field. Braces hold the path of the component's spec."""


class _Template(Model, kw_only=True):
    spec: PodSpec = {}


class ClaimOverlay(Model, kw_only=True):
    """What an overlay adds to the claim template that `metadata` names."""

    metadata: ClaimMetadata
    spec: ClaimSpec = {}


class Overlay(Model, kw_only=True):
    """What an overlay adds to the pods and claims of a StatefulSet."""

    template: _Template = field(default_factory=_Template)
    volume_claim_templates: list[ClaimOverlay] = []


def overlay_annotation(component: str) -> str:
    """The annotation of a cluster with a component's overlay. Not known to v1.6."""
    return f"tidb.pingcap.com/{component}-overlay"


def overlay_of(component: Component) -> Overlay | None:
    """The overlay of a component; None without one. Raises InvalidField, which validation reports earlier."""
    key = overlay_annotation(component.name)
    text = component.tc.metadata.annotations.get(key)
    if text is None:
        return None
    place = _place(key)
    tree = _tree(text, place)
    try:
        overlay = decode(tree, Overlay)
    except InvalidField as error:
        problems = [Problem(f"{place}.{each.field}", each.value, each.message) for each in error.problems]
        raise _invalid(problems) from error
    if problems := list(_refused(component, tree, place)):
        raise _invalid(problems)
    return overlay


def without_overlays(tc: _C) -> _C:
    """The cluster as an operator reads it that knows no overlays."""
    overlays = _overlays(tc)
    kept = {key: value for key, value in tc.metadata.annotations.items() if key not in overlays}
    return structs.replace(tc, metadata=structs.replace(tc.metadata, annotations=kept))


def _overlays(tc: Cluster) -> dict[str, str]:
    return {key: text for key, text in tc.metadata.annotations.items() if _KEY.fullmatch(key)}


def check(tc: Cluster) -> Iterator[Problem]:
    """The problems of all overlays of a cluster; each must belong to a component that runs in a StatefulSet."""
    overlays = _overlays(tc)
    names = component_names(lambda row: not row.name.endswith("discovery"), tc.kind) if overlays else ()
    known = {overlay_annotation(name): name for name in names}
    for key, text in overlays.items():
        if key not in known:
            message = f"belongs to no component with an overlay; these have one: {', '.join(names)}"
            yield Problem(_place(key), text, message)
        elif component := find(tc, known[key]):
            try:
                overlay_of(component)
            except InvalidField as error:
                yield from error.problems


def unknown_in_overlays(tc: Cluster) -> Iterator[Problem]:
    """The fields of a valid cluster's overlays that Kubernetes drops, unless it is newer than this operator."""
    for key, text in _overlays(tc).items():
        place = _place(key)
        for unknown in unknown_fields(_tree(text, place), Overlay):
            meant = f"; did you mean {' or '.join(unknown.nearest)}?" if unknown.nearest else ""
            message = f"is not known to this operator; a Kubernetes without it drops it{meant}"
            yield Problem(f"{place}.{unknown.path}", None, message)


def _place(key: str) -> str:
    return f'metadata.annotations["{key}"]'


def _tree(text: str, place: str) -> Json:
    try:
        tree = msgspec.json.decode(text)
    except UNREADABLE as error:
        message = f'is not JSON ({error}); write it as {{"template":{{"spec":{{"enableServiceLinks":false}}}}}}'
        raise InvalidField(place, text, message) from None
    if not isinstance(tree, dict):
        raise InvalidField(
            place, text, 'must be a JSON object such as {"template":{"spec":{"enableServiceLinks":false}}}'
        )
    return without_nulls(tree)


def _invalid(problems: list[Problem]) -> InvalidField:
    first, *others = problems
    return InvalidField(first.field, first.value, first.message, others=others)


# The protected fields

_OPERATORS = "decides which pod runs where, how long and with which data, so the operator sets it; remove it here"
_ONLY = "has no place in an overlay, which consists of template.spec and volumeClaimTemplates; remove it"

_STATEFUL_SET: _Refusals = {"*": _ONLY}
_TEMPLATE: _Refusals = {"metadata": "has its place in the spec: set {0}.labels and {0}.annotations", "*": _ONLY}

_HAS_ITS_PLACE = "has its place in the spec: set {0}."
_POD: _Refusals = {
    **dict.fromkeys(
        (
            *("activeDeadlineSeconds", "ephemeralContainers", "hostname", "hostnameOverride", "nodeName"),
            *("restartPolicy", "setHostnameAsFQDN", "subdomain"),
        ),
        _OPERATORS,
    ),
    **{
        name: f"{_HAS_ITS_PLACE}{name}"
        for name in (
            *("affinity", "automountServiceAccountToken", "dnsConfig", "dnsPolicy", "hostNetwork", "imagePullSecrets"),
            *("initContainers", "nodeSelector", "priorityClassName", "schedulerName", "terminationGracePeriodSeconds"),
            *("tolerations", "topologySpreadConstraints"),
        )
    },
    "containers": f"{_HAS_ITS_PLACE}additionalContainers, which merges into a container of the same name",
    "securityContext": f"{_HAS_ITS_PLACE}podSecurityContext",
    "serviceAccount": "has its place in the spec: set spec.serviceAccount",
    "serviceAccountName": "has its place in the spec: set spec.serviceAccount",
    "volumes": f"{_HAS_ITS_PLACE}additionalVolumes",
}
_CLAIM: _Refusals = {"*": "has no place in a claim's overlay, which consists of metadata and spec; remove it"}
_CLAIM_METADATA: _Refusals = {"*": "has no place here; write name, labels and annotations"}
_CLAIM_SPEC: _Refusals = {
    **dict.fromkeys(("dataSource", "dataSourceRef", "selector", "volumeMode", "volumeName"), _OPERATORS),
    **dict.fromkeys(
        ("resources", "storageClassName", "volumeAttributesClassName"),
        "has its place in the spec: set the size and the classes of volumes in {0}",
    ),
}

_OTHERS_DOMAINS = ("pingcap.com", "kubernetes.io", "k8s.io")
"""The domains of keys by which operators and Kubernetes decide about claims."""


def _refused(component: Component, tree: Json, place: str) -> Iterator[Problem]:
    """The protected fields in an overlay whose values have the right types."""
    own = component.field
    yield from _among(tree, _STATEFUL_SET, ("template", "volumeClaimTemplates"), place, own)
    template = tree.get("template") or {}
    yield from _among(template, _TEMPLATE, ("spec",), f"{place}.template", own)
    yield from _among(template.get("spec") or {}, _POD, (), f"{place}.template.spec", own)
    names = _claim_names(component)
    for index, claim in enumerate(tree.get("volumeClaimTemplates") or ()):
        at, metadata = f"{place}.volumeClaimTemplates[{index}]", claim["metadata"]
        yield from _among(claim, _CLAIM, ("metadata", "spec"), at, own)
        yield from _among(claim.get("spec") or {}, _CLAIM_SPEC, (), f"{at}.spec", own)
        yield from _among(metadata, _CLAIM_METADATA, ("name", "labels", "annotations"), f"{at}.metadata", own)
        if metadata.get("name") not in names:
            message = f"must name a claim template of {component.name} ({', '.join(names) or 'it has none'})"
            yield Problem(f"{at}.metadata.name", metadata.get("name"), message)
        for kind in ("labels", "annotations"):
            yield from _keys(metadata.get(kind) or {}, f"{at}.metadata.{kind}")


def _among(tree: Json, refusals: _Refusals, allowed: tuple[str, ...], place: str, own: str) -> Iterator[Problem]:
    for key, value in tree.items():
        refusal = refusals.get(key, refusals.get("*"))
        if key not in allowed and refusal:
            yield Problem(step(place, key), value, refusal.format(own))


def _keys(entries: Mapping[str, str], place: str) -> Iterator[Problem]:
    for key, value in entries.items():
        domain = key.rpartition("/")[0]
        if any(domain == each or domain.endswith(f".{each}") for each in _OTHERS_DOMAINS):
            message = f"belongs to Kubernetes or the operator, as every key of {domain}; write one of another domain"
            yield Problem(step(place, key), value, message)


def _claim_names(component: Component) -> list[str]:
    """The names of a component's claim templates (objects.md 5)."""
    own = [component.type.data_volume] if component.type.data_volume else []
    stored = [f"{component.name}-{volume.name}" for volume in getattr(component.spec, "storage_volumes", ())]
    listed = [f"data{index}" for index in range(len(getattr(component.spec, "storage_claims", ())))]
    return [*own, *stored, *listed]

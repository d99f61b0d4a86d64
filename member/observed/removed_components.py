"""Components that run although the spec no longer has them (objects.md 1.1): the operator treats them as they run.

As in v1.6, removing a component from the spec deletes nothing. For all other code the component still exists, with its
present size and image: dependent components keep working, and its status stays current.
"""

from collections.abc import Collection
from typing import TypeVar

from msgspec import structs

from apis.cluster import Cluster
from apis.components import ComponentType, component_type
from apis.decoding import decode
from apis.ordinals import desired_replicas
from apis.shared import WorkloadSpec
from kube.objects import Json
from kube.reading import Lister
from member.naming import member_name
from member.observed.belonging import is_controlled_by

C = TypeVar("C", bound=Cluster)


def running_without_spec(tc: Cluster, stateful_sets: Lister, components: Collection[str]) -> dict[str, Json]:
    """The StatefulSets with replicas that the cluster controls but whose component the spec lacks, by component."""
    found = {}
    for name in components:
        live = stateful_sets.get(tc.metadata.namespace, member_name(tc, name))
        if live is None or component_type(name).section(tc.spec) is not None:
            continue
        body = live.decode()
        if is_controlled_by(live, tc.metadata.uid) and body["spec"].get("replicas", 1):
            found[name] = body
    return found


def with_removed(tc: C, running: dict[str, Json]) -> C:
    """The cluster, with a spec for each component that runs without one: its size, image and volumes."""
    for name, body in running.items():
        row, tc = component_type(name), _with_spec(tc, name, body, body["spec"].get("replicas", 1))
        # the replicas of the StatefulSet include substitutes of failed members
        substitutes = desired_replicas(tc, row.name) - body["spec"].get("replicas", 1)
        if substitutes:
            tc = _with_spec(tc, name, body, max(body["spec"].get("replicas", 1) - substitutes, 0))
    return tc


def _with_spec(tc: C, name: str, body: Json, replicas: int) -> C:
    row = component_type(name)
    section = row.section(decode(row.slot.tree(_content(row, body) | {"replicas": replicas}), type(tc.spec)))
    assert section is not None
    assert isinstance(section[1], WorkloadSpec)
    return structs.replace(tc, spec=row.replaced(tc.spec, section[1].with_defaults()))


def _content(row: ComponentType, body: Json) -> Json:
    """The part of the former spec that a StatefulSet shows, as far as a status needs it."""
    containers = body["spec"]["template"]["spec"]["containers"]
    image = next((each["image"] for each in containers if each["name"] == row.name), "")
    content: Json = {"image": image, "baseImage": "", "version": ""}
    claims = {each["metadata"]["name"]: each["spec"] for each in body["spec"].get("volumeClaimTemplates") or ()}
    if row.storage_claims:
        return content | {"storageClaims": [_storage_claim(spec) for _, spec in sorted(claims.items(), key=_place)]}
    if data := claims.pop(row.data_volume, None):
        size = {"requests": {"storage": _size(data)}, "storageSize": _size(data)}
        content |= size | {"storageClassName": data.get("storageClassName")}
    content["storageVolumes"] = [
        {
            "name": claim.removeprefix(f"{row.name}-"),
            "storageSize": _size(spec),
            "storageClassName": spec.get("storageClassName"),
        }
        for claim, spec in claims.items()
    ]
    return content


def _storage_claim(spec: Json) -> Json:
    return {"resources": {"requests": {"storage": _size(spec)}}, "storageClassName": spec.get("storageClassName")}


def _place(named: tuple[str, Json]) -> int:
    """The index of a claim in the list, which is the suffix of its name."""
    return int(named[0].removeprefix("data"))


def _size(claim: Json) -> str:
    return str(claim["resources"]["requests"]["storage"])

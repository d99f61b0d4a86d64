"""Components that run although the spec has them no more (objects.md 1.1): they are looked at as they run.

Removing one from the spec deletes nothing, in v1.6 either. To all else such a component is still there, as large as it
is and with the image that it runs: what depends on it goes on, and its status with it.
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
    """The StatefulSets with replicas that the cluster controls and whose component its spec lacks, by component."""
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
    """The cluster with a spec for components that run without one: their size, image and volumes."""
    for name, body in running.items():
        row, tc = component_type(name), _with_spec(tc, name, body, body["spec"].get("replicas", 1))
        # the StatefulSet has the substitutes of failed members, too
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
    """What a StatefulSet tells of the spec that it was made of, as far as a status shows it."""
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
    """Where a claim stands in the list, which its name ends in."""
    return int(named[0].removeprefix("data"))


def _size(claim: Json) -> str:
    return str(claim["resources"]["requests"]["storage"])

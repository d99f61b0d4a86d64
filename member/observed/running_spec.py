"""The running state of a cluster, for the rules that depend on it (api/defaults-and-validation.md 4).

Components may run although the spec no longer has them (objects.md 1.1). As in v1.6, removing a component from the spec
deletes nothing. For all other code the component still exists, with its present size and image: dependent components
keep working, and its status stays current. Reads caches only.
"""

import re
from collections.abc import Collection, Mapping
from typing import TypeVar

from msgspec import structs

from apis.accessor import components
from apis.cluster import Cluster
from apis.components import ComponentType, component_type
from apis.decoding import decode
from apis.ordinals import desired_replicas
from apis.shared import WorkloadSpec
from apis.tidbcluster import TidbCluster
from apis.validation import Running, observe
from kube.objects import Json
from kube.reading import Lister
from member.context import Listers
from member.labels import base_labels
from member.naming import address_book, member_name
from member.objects.config_map import STARTUP_SCRIPT, in_use_config_map_name
from member.observed.instances import instance_of
from member.observed.pods import controls, is_controlled_by

_DOMAIN = r"(?:\.([a-z0-9](?:[-a-z0-9.]*[a-z0-9])?))?"
_NAMED = re.compile(rf"^SUFFIX=svc{_DOMAIN}$|^[^#\n]*(?:SERVICE_NAME\}}?|-peer)\.[^.\s]+\.svc{_DOMAIN}", re.MULTILINE)
"""A setting in this operator's scripts; in v1.6's scripts it is part of the name."""


def running(tc: TidbCluster, listers: Listers) -> Running:
    """The StatefulSets of the cluster's components, and the configuration that their pods mount."""
    namespace = tc.metadata.namespace
    stateful_sets: dict[str, Json] = {}
    mounted: dict[str, dict[str, str]] = {}
    for name in [part.name for part in components(tc)]:
        live = listers.stateful_sets.get(namespace, member_name(tc, name))
        if live is None or not controls(tc.metadata.uid, live):
            continue
        stateful_sets[name] = live.decode()
        in_use = in_use_config_map_name(tc, name, stateful_sets[name])
        config_map = listers.config_maps.get(namespace, in_use) if in_use else None
        if config_map is not None:
            mounted[name] = config_map.decode().get("data") or {}
    config_files = {name: data.get(component_type(name).config.file, "") for name, data in mounted.items()}
    file = component_type("pd").config.file
    left = () if "pd" in stateful_sets else [data.get(file, "") for data in remaining_config(tc, "pd", listers)]
    return observe(stateful_sets, config_files, _domains(tc, listers, mounted), _instance(tc, listers), left)


def _instance(tc: TidbCluster, listers: Listers) -> str:
    """The instance name in the selector of Discovery, which remains while PD is suspended."""
    live = listers.deployments.get(tc.metadata.namespace, member_name(tc, "discovery"))
    return instance_of(live) if live is not None and is_controlled_by(live, tc.metadata.uid) else ""


def _domains(tc: TidbCluster, listers: Listers, mounted: Mapping[str, Mapping[str, str]]) -> set[str]:
    """The domains under which pods register, and the domains in the addresses of PD's members."""
    book = address_book(tc)
    registered = (book.domain_of("pd", member.client_url) for member in tc.status.pd.members.values())
    data = mounted.values() or remaining_config(tc, "pd", listers)
    scripts = (domain_of(each.get(STARTUP_SCRIPT, "")) for each in data)
    return {domain for domain in (*registered, *scripts) if domain is not None}


def remaining_config(tc: Cluster, component: str, listers: Listers) -> list[dict[str, str]]:
    """The contents of a component's ConfigMaps, which remain while the component is suspended."""
    maps = listers.config_maps.list(tc.metadata.namespace, base_labels(tc, component))
    return [config_map.decode().get("data") or {} for config_map in maps]


def domain_of(script: str) -> str | None:
    """The domain; empty if the pod registers without one; None if the script does not show it."""
    match = _NAMED.search(script)
    return None if match is None else match[1] or match[2] or ""


C = TypeVar("C", bound=Cluster)


def running_without_spec(tc: Cluster, stateful_sets: Lister, components: Collection[str]) -> dict[str, Json]:
    """The StatefulSets with replicas that the cluster controls but whose component the spec lacks, by component."""
    found = {}
    for name in components:
        live = stateful_sets.get(tc.metadata.namespace, f"{tc.metadata.name}-{name}")
        if live is None or component_type(name).slot.spec(tc.spec) is not None:
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
    spec = row.slot.spec(decode(row.slot.tree(_content(row, body) | {"replicas": replicas}), type(tc.spec)))
    assert isinstance(spec, WorkloadSpec)
    return structs.replace(tc, spec=row.replaced(tc.spec, spec.with_defaults()))


def _content(row: ComponentType, body: Json) -> Json:
    """The part of the former spec that a StatefulSet shows, as far as a status needs it."""
    containers = body["spec"]["template"]["spec"]["containers"]
    image = next((container["image"] for container in containers if container["name"] == row.name), "")
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

"""The running state of a cluster, for the rules that depend on it (api/defaults-and-validation.md 4).

Reads caches only.
"""

import re
from collections.abc import Mapping

from apis.accessor import components
from apis.cluster import Cluster
from apis.components import component_type
from apis.tidbcluster import TidbCluster
from apis.validation import Running, observe
from kube.objects import Json
from member.context import Listers
from member.labels import base_labels
from member.naming import address_book, member_name
from member.objects.config_map import STARTUP_SCRIPT, in_use_config_map_name
from member.observed.belonging import controls, is_controlled_by
from member.observed.instances import instance_of

_DOMAIN = r"(?:\.([a-z0-9](?:[-a-z0-9.]*[a-z0-9])?))?"
_NAMED = re.compile(rf"^SUFFIX=svc{_DOMAIN}$|^[^#\n]*(?:SERVICE_NAME\}}?|-peer)\.[^.\s]+\.svc{_DOMAIN}", re.MULTILINE)
"""A setting in this operator's scripts; in v1.6's scripts it is part of the name."""


def running(tc: TidbCluster, listers: Listers) -> Running:
    """The StatefulSets of the cluster's components, and the configuration that their pods mount."""
    namespace = tc.metadata.namespace
    stateful_sets: dict[str, Json] = {}
    mounted: dict[str, dict[str, str]] = {}
    for part in components(tc):
        live = listers.stateful_sets.get(namespace, member_name(tc, part.name))
        if live is None or not controls(tc.metadata.uid, live):
            continue
        stateful_sets[part.name] = live.decode()
        in_use = in_use_config_map_name(tc, part.name, stateful_sets[part.name])
        config_map = listers.config_maps.get(namespace, in_use) if in_use else None
        if config_map is not None:
            mounted[part.name] = config_map.decode().get("data") or {}
    config_files = {name: data.get(component_type(name).config.file, "") for name, data in mounted.items()}
    file = component_type("pd").config.file
    left = () if "pd" in stateful_sets else [data.get(file, "") for data in left_behind(tc, "pd", listers)]
    return observe(stateful_sets, config_files, _domains(tc, listers, mounted), _instance(tc, listers), left)


def _instance(tc: TidbCluster, listers: Listers) -> str:
    """The instance name in the selector of Discovery, which remains while PD is suspended."""
    live = listers.deployments.get(tc.metadata.namespace, member_name(tc, "discovery"))
    return instance_of(live) if live is not None and is_controlled_by(live, tc.metadata.uid) else ""


def _domains(tc: TidbCluster, listers: Listers, mounted: Mapping[str, Mapping[str, str]]) -> set[str]:
    """The domains under which pods register, and the domains in the addresses of PD's members."""
    book = address_book(tc)
    registered = (book.domain_of("pd", member.client_url) for member in tc.status.pd.members.values())
    data = mounted.values() or left_behind(tc, "pd", listers)
    scripts = (domain_of(each.get(STARTUP_SCRIPT, "")) for each in data)
    return {domain for domain in (*registered, *scripts) if domain is not None}


def left_behind(tc: Cluster, component: str, listers: Listers) -> list[dict[str, str]]:
    """The contents of a component's ConfigMaps, which remain while the component is suspended."""
    maps = listers.config_maps.list(tc.metadata.namespace, base_labels(tc, component))
    return [config_map.decode().get("data") or {} for config_map in maps]


def domain_of(script: str) -> str | None:
    """The domain; empty if the pod registers without one; None if the script does not show it."""
    found = _NAMED.search(script)
    return None if found is None else found[1] or found[2] or ""

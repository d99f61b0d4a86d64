"""The effect of a field, found by setting it in a cluster and comparing all objects."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import msgspec

from apis.accessor import component, find
from apis.cluster import Cluster
from apis.defaulting import with_defaults
from apis.problem import Problem
from apis.tidbcluster import TidbCluster
from apis.validation import stricter, validate
from cli.fields.effects import Place, differences
from cli.fields.samples import pairs
from kube.objects import Json
from member import discovery
from member.components import workload, workload_names
from member.fields.declared import fields
from member.naming import member_name
from member.objects.config_map import choose_config_map, config_map
from ports.structs import convert

IMAGE = "pingcap/tidb-operator:latest"

_KEPT = 32
"""The number of clusters with cached objects: most fields are compared with the same few."""


@dataclass(frozen=True, slots=True)
class Effect:
    """The places where a field shows, and the first cluster of `samples.SETTINGS` with them; no places: no effect."""

    places: frozenset[Place] = frozenset()
    title: str = ""


class BadSample(Exception):
    """Raised for a sample that the operator rejects, so that it shows nothing."""

    def __init__(self, path: str, problems: list[Problem]) -> None:
        super().__init__(f"the sample of spec.{path} is refused: {'; '.join(map(str, problems))}")


def built_objects(cluster: Json) -> Sequence[Json]:
    """The objects of a cluster without status. Do not modify them."""
    return _built_objects(msgspec.json.encode(cluster))


@lru_cache(_KEPT)
def _built_objects(cluster: bytes) -> Sequence[Json]:
    return tuple(desired_objects(_defaulted(msgspec.json.decode(cluster)), IMAGE))


@cache
def effect(path: str) -> Effect:
    """The effect of a field. Raises BadSample."""
    for pair in pairs(path, fields()[path]):
        if problems := _problems(pair.after):
            raise BadSample(path, problems)
        if places := differences(built_objects(pair.before), built_objects(pair.after)):
            return Effect(frozenset(places), pair.title)
    return Effect()


def _problems(cluster: Json) -> list[Problem]:
    tc = _defaulted(cluster)
    return [*validate(tc), *stricter.check(tc, {})]


def _defaulted(cluster: Json) -> TidbCluster:
    return with_defaults(convert(cluster, TidbCluster))


def desired_objects(tc: Cluster, discovery_image: str) -> Iterator[Json]:
    """The objects of a defaulted cluster, component by component. Raises InvalidField for an invalid spec."""
    if discovery.wanted(tc):
        yield discovery.role_of(tc)
        yield discovery.service_account(tc)
        yield discovery.role_binding(tc)
        yield discovery.deployment(tc, discovery_image)
        yield discovery.service(tc)
    for own in (workload(name) for name in workload_names(tc.kind) if find(tc, name) is not None):
        strategy = component(tc, own.name).config_update_strategy
        choice = choose_config_map(member_name(tc, own.name), own.content(tc), strategy)
        yield from own.services(tc)
        if choice.data:
            yield config_map(tc, own.name, choice)
        yield own.stateful_set(tc, choice.name)

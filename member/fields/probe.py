"""The effect of a field, found by setting it in a cluster and comparing all objects."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import msgspec

from apis.defaulting import with_defaults
from apis.problem import Problem
from apis.tidbcluster import TidbCluster
from apis.validation import stricter, validate
from kube.objects import Json
from member.fields.effects import Place, differences
from member.fields.objects import desired_objects
from member.fields.samples import pairs
from member.fields.schema import fields
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


def made_of(cluster: Json) -> Sequence[Json]:
    """The objects of a cluster without status. Do not modify them."""
    return _made_of(msgspec.json.encode(cluster))


@lru_cache(_KEPT)
def _made_of(cluster: bytes) -> Sequence[Json]:
    return tuple(desired_objects(_defaulted(msgspec.json.decode(cluster)), IMAGE))


@cache
def effect(path: str) -> Effect:
    """The effect of a field. Raises BadSample."""
    for pair in pairs(path, fields()[path]):
        if problems := _problems(pair.after):
            raise BadSample(path, problems)
        if places := differences(made_of(pair.before), made_of(pair.after)):
            return Effect(frozenset(places), pair.title)
    return Effect()


def _problems(cluster: Json) -> list[Problem]:
    tc = _defaulted(cluster)
    return [*validate(tc), *stricter.check(tc, {})]


def _defaulted(cluster: Json) -> TidbCluster:
    return with_defaults(convert(cluster, TidbCluster))

"""R22: what a user declares is seen in the object that must carry it, or it is written here why in none.

The fields and what they are set to are those of the simulator's sweep, which sets and unsets each of them in a running
cluster.
"""

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

import msgspec
import pytest

from apis.defaulting import with_defaults
from apis.tidbcluster import TidbCluster
from apis.validation import validate
from kube.objects import Json
from simulate import fields
from simulate.trees import merged
from simulate.worlds import CLUSTERS, replicas_of
from tests.member.recordings import desired_objects, identity

_BASES: dict[str, Json] = {
    "small": {},
    "with TLS": {"tlsCluster": {"enabled": True}, "tidb": {"tlsClient": {"enabled": True}}},
    "by image": {"version": None}
    | {part: {"baseImage": "", "image": f"{part}:v8.5.2"} for part in replicas_of("small")},
}
"""What clusters are like in which a field may mean something."""

_IN_NO_OBJECT = {
    "*.suspendAction.suspendStatefulSet": "decides whether there is a StatefulSet",
    "*.maxFailoverCount": "for failover",
    "*.recoverFailover": "for failover",
    "*.failover.recoverByUID": "for failover",
    "*.spareVolReplaceReplicas": "for replacement of volumes",
    "*.scalePolicy.*": "for scaling",
    "*.evictLeaderTimeout": "for upgrades",
    "*.waitLeaderTransferBackTimeout": "for upgrades",
    "tikv.storeLabels": "for PD, which is told",
    "pd.mode": "for microservices, with spec.pdms",
    "tidb.initializer.createPassword": "for a Secret and TiDB, once it serves",
    "pd.service.port": "ignored as in v1.6, whose pods know the port of PD by heart",
    "pd.service.loadBalancer[SC]*": "ignored as in v1.6",
    "tidb.storageClassName": "for storageVolumes",
    "tidb.volumeAttributesClassName": "for storageVolumes",
}

_WAYS = ("*.configUpdateStrategy", "*.readinessProbe.type")
"""Fields whose values name a way to make something, and are not in what is made."""


@cache
def objects(base: str, field: str = "") -> dict[str, Json]:
    """What we make for a cluster, with a field of it set."""
    tree = CLUSTERS["small"]()
    tree["metadata"] |= {"namespace": "ns", "uid": "uid-1"}
    tree["spec"] = merged(tree["spec"], _BASES[base])
    if field:
        tree["spec"] = merged(tree["spec"], fields.field(field).edits[0].spec)
    tc = with_defaults(msgspec.convert(tree, TidbCluster))
    assert [] == validate(tc)
    return {identity(made): made for made in desired_objects(tc)}


def leaves(value: Any, path: str = "") -> Iterator[str]:
    """`path=value` of whatever is in a tree."""
    if isinstance(value, dict | list) and value:
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inner, f"{path}/{key}")
    else:
        yield f"{path}={value}"


def declared(field: str) -> Iterator[str]:
    """The texts and numbers that a field is set to; whether something is on or off need not be seen as such."""
    value: Any = fields.field(field).edits[0].spec
    for name in field.split("."):
        value = value[name]
    for leaf in leaves(value):
        path, _, text = leaf.partition("=")
        if text not in ("True", "False"):
            yield text
        if isinstance(value, dict):
            yield path.rpartition("/")[2]


def is_seen(base: str, field: str) -> bool:
    """Whether something is made otherwise, and says what the field says."""
    without, with_field = objects(base), objects(base, field)
    if not with_field:
        # a part that does not exist yet: named in the condition, and the component is left as it is
        return True
    changed = set(leaves(with_field)) ^ set(leaves(without))
    text = "\n".join(changed)
    return bool(changed) and (is_one_of(_WAYS, field) or all(each in text for each in declared(field)))


def is_one_of(globs: Iterable[str], field: str) -> bool:
    return any(fnmatchcase(field, glob) for glob in globs)


NAMES = [plan.name.partition("/")[2] for plan in fields.fields()]


@pytest.mark.parametrize("field", [name for name in NAMES if not is_one_of(_IN_NO_OBJECT, name)])
def test_R22_what_is_declared_is_seen(field: str) -> None:
    assert any(is_seen(base, field) for base in _BASES)


@pytest.mark.parametrize("field", [name for name in NAMES if is_one_of(_IN_NO_OBJECT, name)])
def test_R22_what_is_for_the_operator_changes_no_object(field: str) -> None:
    assert all(objects(base) == objects(base, field) for base in _BASES)

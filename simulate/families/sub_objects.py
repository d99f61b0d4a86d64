"""Every sub-object of the other kinds left empty, and every target absent.

`beside/tidbmonitors.grafana={}` creates a TidbMonitor whose `spec.grafana` is an empty object; `=null` omits it.
`beside/tidbmonitors@absent` refers to a TidbCluster that does not exist, `@deleted` to one that is deleted,
`@made-again` to one that is deleted and recreated, `@pending` to one that is not Ready yet. Each ends Ready or with a
reason, and without an exception.
"""

from collections.abc import Iterator, Mapping
from itertools import chain

from apis.crd import KINDS, definition
from kube.objects import Json
from kube.resources import DM_CLUSTERS, TIDB_CLUSTERS, Resource
from simulate.engine.other_kinds import OTHER_KINDS, made, name_of, spec_of_kind
from simulate.engine.plan import DELETED, Edit, Plan, World
from simulate.engine.trees import merged
from simulate.engine.worlds import NAME, NAMESPACE
from simulate.families.family import of_known
from simulate.families.fields import at

_CLUSTER = "tiny"
_BUDGET = 90.0
_DEEP = 2
"""The maximum number of fields in a path."""
_EMPTY: Mapping[str, object] = {"{}": {}, "null": None}

_TARGET = f"{TIDB_CLUSTERS}/{NAME}"
_GONE = Edit(at=30.0, delete=_TARGET)
_PENDING = World(at=0.5, verb="pod_crash_loop", arguments={"pod": f"{NAMESPACE}/{NAME}-tidb-0"}, seconds=40.0)


def _plans() -> Iterator[Plan]:
    return chain.from_iterable(map(_of, OTHER_KINDS))


def _of(resource: Resource) -> Iterator[Plan]:
    for path in _objects(resource):
        for spelt, value in _EMPTY.items():
            spec = merged(spec_of_kind(resource), at(path, None))
            yield _plan(resource, f".{path}={spelt}", made(1.0, resource, _with(spec, path, value)))
    if resource == DM_CLUSTERS:
        return
    yield _plan(resource, "@absent", made(1.0, resource, spec_of_kind(resource, "nobodys")))
    yield _plan(resource, "@deleted", made(1.0, resource), _GONE, end=DELETED)
    yield _plan(resource, "@made-again", made(1.0, resource), _GONE, Edit(at=40.0, create=_CLUSTER))
    yield _plan(resource, "@pending", made(1.0, resource), given=_PENDING)


def _plan(resource: Resource, what: str, *edits: Edit, given: World | None = None, end: str = "Done") -> Plan:
    ends = {f"{resource}/{name_of(resource)}": "*"}
    return Plan(
        name=f"{FAMILY.name}/{resource.plural}{what}",
        cluster=_CLUSTER,
        budget=_BUDGET,
        edits=edits,
        given=(given,) if given else (),
        reference=False,
        ends=end,
        ends_beside=ends,
    )


def _objects(resource: Resource) -> Iterator[str]:
    """The paths of all objects and lists in the spec of a kind, a few fields deep."""
    kind = next(each for each in KINDS if each.plural == resource.plural)
    version = definition(kind)["spec"]["versions"][0]
    yield from _below("", version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"], _DEEP)


def _below(path: str, nodes: Json, deep: int) -> Iterator[str]:
    for name, node in sorted(nodes.items()):
        if node.get("type") == "object":
            yield f"{path}{name}"
            if deep > 1:
                yield from _below(f"{path}{name}.", node.get("properties") or {}, deep - 1)


def _with(tree: Json, path: str, value: object) -> Json:
    """A tree with a value, possibly null, at a path."""
    outer, _, rest = path.partition(".")
    return tree | {outer: _with(tree.get(outer) or {}, rest, value) if rest else value}


FAMILY = of_known("beside", _plans, f"nothing of {', '.join(map(str, OTHER_KINDS))}")

"""Changes that come from a new version of the operator, not from the user: they wait for the user's next change.

Each StatefulSet carries an annotation with the cluster that its pod template was written for. The operator builds the
template of that cluster and the template of the present one. If both are the same, the user has changed nothing, and
every difference from the running template comes from the operator itself. Defaults that a new CRD adds are such
differences, too: they change what the operator reads, but not the generation.

A StatefulSet without the annotation, e.g. one of v1.6, gives no such information. A difference in it counts as the
operator's own if the running template only lacks two kinds of things: what this version adds to every cluster, and what
v1.6 ignored in the spec. The operator adds the annotation once nothing else has to be written, so that it can recognize
later changes by the user.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

import msgspec
import structlog
from msgspec import structs

from apis.accessor import workloads
from apis.cluster import Cluster
from apis.components import component_types
from apis.decoding import decode
from apis.defaulting import with_defaults
from apis.graceful_stop import GRACEFUL_STOP
from apis.identity import INSTANCE_LABEL
from apis.ordinals import gated
from apis.overlays import without_overlays
from apis.problem import InvalidField
from apis.ready_endpoints import READY_ENDPOINTS
from kube.field_change import FieldChange
from kube.objects import Json, Object
from member import labels
from member.apply.last_applied import read_record, same_template, with_running_template
from member.context import ClusterContext
from member.lifecycle.refused_writes import noted
from member.lifecycle.workload import Workload
from member.objects.config_map import Content, in_use_config_map_name, same_toml
from ports.structs import UNREADABLE

_T = TypeVar("_T")

log = structlog.get_logger(__name__)

_TOLD_AGAIN = 3600.0
"""Seconds until the log repeats a message."""

_NOTED_AGAIN = 600.0
"""Seconds until the operator writes a missing note again, after a failure or after another client removed it."""


@dataclass(frozen=True, slots=True)
class OwnChange:
    """A difference that waits for the user's next change; `field` is the first one in the pod template, if any.

    `is_read_otherwise`: this version reads the cluster differently, e.g. with new defaults, though no client has
    written it.
    """

    field: FieldChange | None
    is_read_otherwise: bool = False

    def __str__(self) -> str:
        """The difference, for messages."""
        return str(self.field) if self.field else "the configuration as this version writes it"


@dataclass(frozen=True, slots=True)
class _Noted:
    """The defaulted cluster that a template was written for; `is_current` if the user has not changed it since."""

    cluster: Cluster
    is_current: bool


class _Note(msgspec.Struct):
    """The content of the annotation: the parts of the cluster that affect the pod template."""

    uid: str
    generation: int
    metadata: dict[str, dict[str, str]]
    spec: Json


_NOTES = msgspec.json.Decoder(_Note)


def own_change(
    ctx: ClusterContext,
    member: Workload,
    body: Json,
    desired: Json,
    change: FieldChange | None,
    *,
    data: Mapping[str, str],
) -> OwnChange | None:
    """The difference between a StatefulSet and `desired` if the user has not asked for it; None if they have.

    `body` is the StatefulSet, or what a deleted one has left. `change` is the difference in the pod template, `data`
    the content of its ConfigMap.
    """
    known = _noted(ctx, body)
    if known is None:
        if change is None:
            return None
        then = _as_built_by_v16(ctx, member, body, data) or desired
        return OwnChange(change) if _is_in_every_cluster(ctx, member, body, then) else None
    if not _asks_for_another(member, known.cluster, ctx.tc):
        return OwnChange(change)
    return OwnChange(change, is_read_otherwise=True) if known.is_current else None


def stateful_set_before(ctx: ClusterContext, member: Workload, body: Json | None) -> Json | None:
    """The StatefulSet that this version builds for the cluster in the note; None if there is no readable note."""
    return _built_before(ctx, body, lambda tc: member.stateful_set(tc, ""))


def content_before(ctx: ClusterContext, member: Workload, body: Json | None) -> Content | None:
    """The configuration that this version builds for the cluster in the note; None if there is no readable note."""
    return _built_before(ctx, body, member.content)


def _built_before(ctx: ClusterContext, body: Json | None, make: Callable[[Cluster], _T]) -> _T | None:
    known = _noted(ctx, body) if body else None
    try:
        return make(known.cluster) if known else None
    except InvalidField:
        return None


def tell(ctx: ClusterContext, member: Workload, change: OwnChange) -> None:
    """Log, at most once an hour, a difference that waits."""
    if ctx.memory.stopwatches.is_due("own change", f"{member.name}: {change}", _TOLD_AGAIN, ctx.deps.clock):
        cluster = f"{ctx.namespace}/{ctx.name}"
        what = "a difference that no change of the spec has made waits for the next one, as it would restart pods"
        log.info(what, cluster=cluster, component=member.name, difference=str(change))


def _asks_for_another(member: Workload, before: Cluster, now: Cluster) -> bool:
    """True if the operator builds different templates or different configurations for the two clusters."""
    try:
        one, other = (member.stateful_set(tc, "")["spec"]["template"] for tc in (before, now))
        there, wanted = (member.content(tc) for tc in (before, now))
    except InvalidField:
        return True
    return not same_template(one, other) or not there.says_the_same(wanted)


# The note


def note(ctx: ClusterContext, component: str) -> str:
    """The text of the annotation: the parts of the cluster that may affect a component's pods."""
    spec = dict(ctx.owner.decode()["spec"])
    for row in component_types(ctx.tc.kind):
        (other,) = row.slot.tree({})
        if row.name != component and isinstance(spec.get(other), dict):
            spec[other] = {key: value for key, value in spec[other].items() if key != "config"}
    meta = ctx.owner.metadata
    return msgspec.json.encode(_Note(meta.uid, meta.generation, _metadata(ctx.tc), spec), order="sorted").decode()


async def note_on(ctx: ClusterContext, component: str, live: Object, body: Json) -> None:
    """Add the note to a StatefulSet that has none and runs what the spec asks for, such as one of v1.6.

    `body` is `live`, decoded. Raises Conflict, other ApiErrors, TransportError.
    """
    if _note_of(body) is not None:
        return
    # another client may remove the note each time, or a webhook reject it
    if ctx.memory.stopwatches.is_due("cluster noted", live.metadata.uid, _NOTED_AGAIN, ctx.deps.clock):
        await noted(live, {labels.WRITTEN_FOR: note(ctx, component)})


def remembered(body: Json) -> str:
    """The text of the annotation; empty if it is missing."""
    text: str = (body["metadata"].get("annotations") or {}).get(labels.WRITTEN_FOR, "")
    return text


def last_written(uid: str, stateful_sets: Iterable[Object]) -> Json | None:
    """The newest cluster with this UID in the notes of StatefulSets; None if no note has it.

    The result has `spec`, with the configuration of one component only, and the parts of `metadata` that the operator
    reads.
    """
    notes = (_note_of(stateful_set.decode()) for stateful_set in stateful_sets)
    own = [each for each in notes if each is not None and each.uid == uid]
    newest = max(own, key=lambda each: each.generation, default=None)
    return {"metadata": newest.metadata, "spec": newest.spec} if newest else None


def _note_of(body: Json) -> _Note | None:
    """The note on a StatefulSet; None if it is missing or unreadable."""
    try:
        return _NOTES.decode(remembered(body))
    except UNREADABLE:
        return None


def _metadata(tc: Cluster) -> dict[str, dict[str, str]]:
    """The labels and annotations of a cluster that the operator reads."""
    theirs = tc.metadata.annotations.items()
    return {
        "labels": {key: value for key, value in tc.metadata.labels.items() if key == INSTANCE_LABEL},
        "annotations": {key: value for key, value in theirs if key.partition("/")[0].endswith("pingcap.com")},
    }


def _noted(ctx: ClusterContext, body: Json) -> _Noted | None:
    written = _note_of(body)
    if written is None:
        return None
    metadata = {"name": ctx.name, "namespace": ctx.namespace, **written.metadata}
    try:
        cluster = with_defaults(decode({"metadata": metadata, "spec": written.spec}, type(ctx.tc)))
        cluster = gated(cluster, ctx.tc.metadata.counts_slots)
    except InvalidField:
        return None
    there, theirs = ctx.owner.metadata, (written.uid, written.generation, written.metadata)
    is_current = theirs == (there.uid, there.generation, _metadata(ctx.tc))
    return _Noted(structs.replace(cluster, status=ctx.tc.status), is_current)


# Without a note


def _as_built_by_v16(ctx: ClusterContext, member: Workload, body: Json, data: Mapping[str, str]) -> Json | None:
    """The StatefulSet as v1.6 built it for this cluster; None if v1.6 wrote a different configuration."""
    if not all(same_toml(data.get(key), text) for key, text in member.content_of_v16(ctx.tc).config_files.items()):
        return None
    tc = _as_read_by_v16(ctx.tc)
    made = member.stateful_set(tc, in_use_config_map_name(ctx.tc, member.name, body))
    return with_running_template(body, member.as_built_by_v16(tc, made))


def _as_read_by_v16(tc: Cluster) -> Cluster:
    """The cluster without the annotations that v1.6 does not know."""
    tc = without_overlays(tc)
    kept = {key: value for key, value in tc.metadata.annotations.items() if key not in (GRACEFUL_STOP, READY_ENDPOINTS)}
    return structs.replace(tc, metadata=structs.replace(tc.metadata, annotations=kept))


def _is_in_every_cluster(ctx: ClusterContext, member: Workload, body: Json, desired: Json) -> bool:
    """True if the running template only lacks things that this version adds to every cluster."""
    record = read_record(body)
    if record is None:
        return False
    plain = member.stateful_set(_plain(ctx), "")
    running, wanted, usual = (
        {leaf for leaf in _leaves(spec["template"]) if not _is_script(*leaf)}
        for spec in (record.spec, desired["spec"], plain["spec"])
    )
    return running <= wanted and wanted - running <= usual


def _is_script(path: str, text: str) -> bool:
    """True for a script in a command: the operator writes it, and its inputs also appear elsewhere in the template."""
    return ".command[" in path and "\n" in text


def _plain(ctx: ClusterContext) -> Cluster:
    """A cluster with the same components and only the required fields."""
    metadata = {"name": ctx.name, "namespace": ctx.namespace, "labels": _metadata(ctx.tc)["labels"]}
    storage: Json = {"requests": {"storage": "1Gi"}}
    plain = decode({"metadata": metadata, "spec": {}}, type(ctx.tc))
    for workload in workloads(ctx.tc):
        least = {"replicas": 1, "storageClaims": [{"resources": storage}]} | storage
        spec = workload.type.slot.spec(decode(workload.type.slot.tree(least), type(plain.spec)))
        assert spec is not None
        plain.spec = workload.type.replaced(plain.spec, spec)
    return with_defaults(plain)


def _leaves(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    """The leaves of a tree, each with its path; list items with a name appear under it."""
    if isinstance(value, dict):
        for key, below in value.items():
            yield from _leaves(below, f"{path}.{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            named = isinstance(item, dict) and "name" in item
            key = f"{item['name']} {item.get('mountPath', '')}" if named else str(index)
            yield from _leaves(item, f"{path}[{key}]")
    elif value not in (None, ""):
        yield path, str(value)

"""What this version of the operator would write otherwise than the one before it: it waits for a change by the user.

A StatefulSet remembers, in an annotation, the cluster that its pod template was written for. The template that today's
operator makes of that cluster is compared with the one it makes of the cluster as it is: where both say the same,
nobody has asked for anything, and whatever differs from the running template is ours. Defaults that a new CRD has added
count as little: they change what is read, and not the generation.

Of a StatefulSet without that annotation, such as one of v1.6, nothing of the kind is known. There a difference is ours
if the running template merely lacks what this version gives every cluster alike, and what v1.6 ignores of the spec. It
gets the annotation as soon as nothing else is left to do with it, so that what the user changes from then on is told
apart from what is ours.
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
from apis.identity import INSTANCE_LABEL
from apis.problem import InvalidField
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
"""Seconds after which the log says the same again."""

_NOTED_AGAIN = 600.0
"""Seconds after which a note that is gone, or could not be made, is written again."""


@dataclass(frozen=True, slots=True)
class OwnChange:
    """A difference that waits: the first field of it, as far as it shows in the pod template.

    `is_read_otherwise`: the cluster is read otherwise than before, though nobody has written it.
    """

    field: FieldChange | None
    is_read_otherwise: bool = False

    def __str__(self) -> str:
        """What differs."""
        return str(self.field) if self.field else "the configuration as this version writes it"


@dataclass(frozen=True, slots=True)
class _Known:
    """The cluster that a template was written for, defaulted; `is_current`: nobody has written it since."""

    cluster: Cluster
    is_current: bool


class _Note(msgspec.Struct):
    """What a StatefulSet remembers: the cluster that its pod template was written for, as far as that shows in it."""

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
    """What differs between a StatefulSet and `desired` if nobody has asked for it; None where somebody has.

    `body` is the StatefulSet as it is or, where it is gone, what has remained of it; `change` is what differs in the
    pod template, `data` what its ConfigMap holds.
    """
    known = _known(ctx, body)
    if known is None:
        if change is None:
            return None
        then = _as_v16_made(ctx, member, body, data) or desired
        return OwnChange(change) if _is_in_every_cluster(ctx, member, body, then) else None
    if not _asks_for_another(member, known.cluster, ctx.tc):
        return OwnChange(change)
    return OwnChange(change, is_read_otherwise=True) if known.is_current else None


def stateful_set_before(ctx: ClusterContext, member: Workload, body: Json | None) -> Json | None:
    """What this version makes of the cluster that a StatefulSet was written for; None where that is not known."""
    return _made_before(ctx, body, lambda tc: member.stateful_set(tc, ""))


def content_before(ctx: ClusterContext, member: Workload, body: Json | None) -> Content | None:
    """The same of its configuration."""
    return _made_before(ctx, body, member.content)


def _made_before(ctx: ClusterContext, body: Json | None, make: Callable[[Cluster], _T]) -> _T | None:
    known = _known(ctx, body) if body else None
    try:
        return make(known.cluster) if known else None
    except InvalidField:
        return None


def tell(ctx: ClusterContext, member: Workload, change: OwnChange) -> None:
    """Say in the log, once an hour, what waits."""
    if ctx.memory.stopwatches.is_due("own change", f"{member.name}: {change}", _TOLD_AGAIN, ctx.deps.clock):
        cluster = f"{ctx.namespace}/{ctx.name}"
        what = "a difference that no change of the spec has made waits for the next one, as it would restart pods"
        log.info(what, cluster=cluster, component=member.name, difference=str(change))


def _asks_for_another(member: Workload, before: Cluster, now: Cluster) -> bool:
    """Whether two clusters differ in what today's operator makes of them, configuration included."""
    try:
        one, other = (member.stateful_set(tc, "")["spec"]["template"] for tc in (before, now))
        there, wanted = (member.content(tc) for tc in (before, now))
    except InvalidField:
        return True
    return not same_template(one, other) or not there.says_the_same(wanted)


# What is remembered


def note(ctx: ClusterContext, component: str) -> str:
    """The cluster, as far as it may show in the pods of a component, for the annotation."""
    spec = dict(ctx.owner.decode()["spec"])
    for row in component_types(ctx.tc.kind):
        (other,) = row.slot.tree({})
        if row.name != component and isinstance(spec.get(other), dict):
            spec[other] = {key: value for key, value in spec[other].items() if key != "config"}
    meta = ctx.owner.metadata
    return msgspec.json.encode(_Note(meta.uid, meta.generation, _metadata(ctx.tc), spec), order="sorted").decode()


def note_on(ctx: ClusterContext, component: str, live: Object, body: Json) -> None:
    """Note the cluster on a StatefulSet, such as one of v1.6, that runs what the cluster asks for and has no note.

    `body` is `live`, decoded. Raises Conflict, other ApiErrors, TransportError.
    """
    if _note_of(body) is not None:
        return
    # others may take it off each time, or not let it pass
    if ctx.memory.stopwatches.is_due("cluster noted", live.metadata.uid, _NOTED_AGAIN, ctx.deps.clock):
        noted(ctx, live, {labels.WRITTEN_FOR: note(ctx, component)})


def remembered(body: Json) -> str:
    """The annotation as it is; empty when there is none."""
    text: str = (body["metadata"].get("annotations") or {}).get(labels.WRITTEN_FOR, "")
    return text


def last_written(uid: str, stateful_sets: Iterable[Object]) -> Json | None:
    """The newest state of the cluster with this UID that StatefulSets were written for; None when none tells.

    It has `spec`, with the configuration of one component alone, and of `metadata` what the operator heeds.
    """
    notes = (_note_of(each.decode()) for each in stateful_sets)
    own = [each for each in notes if each is not None and each.uid == uid]
    newest = max(own, key=lambda each: each.generation, default=None)
    return {"metadata": newest.metadata, "spec": newest.spec} if newest else None


def _note_of(body: Json) -> _Note | None:
    """The note on a StatefulSet; None where there is none that can be read."""
    try:
        return _NOTES.decode(remembered(body))
    except UNREADABLE:
        return None


def _metadata(tc: Cluster) -> dict[str, dict[str, str]]:
    """What the user says in the metadata of a cluster and the operator heeds."""
    theirs = tc.metadata.annotations.items()
    return {
        "labels": {key: value for key, value in tc.metadata.labels.items() if key == INSTANCE_LABEL},
        "annotations": {key: value for key, value in theirs if key.partition("/")[0].endswith("pingcap.com")},
    }


def _known(ctx: ClusterContext, body: Json) -> _Known | None:
    written = _note_of(body)
    if written is None:
        return None
    metadata = {"name": ctx.name, "namespace": ctx.namespace, **written.metadata}
    try:
        cluster = with_defaults(decode({"metadata": metadata, "spec": written.spec}, type(ctx.tc)))
    except InvalidField:
        return None
    there, theirs = ctx.owner.metadata, (written.uid, written.generation, written.metadata)
    is_current = theirs == (there.uid, there.generation, _metadata(ctx.tc))
    return _Known(structs.replace(cluster, status=ctx.tc.status), is_current)


# Without a memory


def _as_v16_made(ctx: ClusterContext, member: Workload, body: Json, data: Mapping[str, str]) -> Json | None:
    """The StatefulSet that v1.6 made of this cluster; None where another configuration is asked for than it wrote."""
    if not all(same_toml(data.get(key), text) for key, text in member.content_of_v16(ctx.tc).config_files.items()):
        return None
    made = member.stateful_set(ctx.tc, in_use_config_map_name(ctx.tc, member.name, body))
    return with_running_template(body, member.made_by_v16(ctx.tc, made))


def _is_in_every_cluster(ctx: ClusterContext, member: Workload, body: Json, desired: Json) -> bool:
    """Whether the running template merely lacks what the template of any cluster has."""
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
    """Whether this is a script in a command: its text is ours, and what it is made from shows elsewhere, too."""
    return ".command[" in path and "\n" in text


def _plain(ctx: ClusterContext) -> Cluster:
    """A cluster with the components of this one, in which everything is left open that can be."""
    metadata = {"name": ctx.name, "namespace": ctx.namespace, "labels": _metadata(ctx.tc)["labels"]}
    storage: Json = {"requests": {"storage": "1Gi"}}
    plain = decode({"metadata": metadata, "spec": {}}, type(ctx.tc))
    for each in workloads(ctx.tc):
        least = {"replicas": 1, "storageClaims": [{"resources": storage}]} | storage
        section = each.type.section(decode(each.type.slot.tree(least), type(plain.spec)))
        assert section is not None
        plain.spec = each.type.replaced(plain.spec, section[1])
    return with_defaults(plain)


def _leaves(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    """What a tree says, each with its path; named items of lists by their names."""
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

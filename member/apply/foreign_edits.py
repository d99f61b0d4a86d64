"""What others have changed in the spec of a StatefulSet since the operator wrote it last.

The record says what was written. A value of it that lives no more was changed by another hand, and so was what is there
beside it, unless the API server adds that by itself. But admission webhooks, too, change what is written, and do so
again and again. To tell the two apart a StatefulSet remembers, in an annotation, its generation after our last write:
whatever differs while it is still at that was put there in the course of it, and stays.

A generation is over with the next write of anybody, such as `kubectl scale`. So what admission has made of the pod
template in the answer to our write is remembered, too, as a digest: a template that is still the same was changed by
no other hand.

A StatefulSet without those annotations, such as one of v1.6, may hold what its pods have long come to run: then only
values that contradict the record count, and all else as long as not all pods have come to it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kube.field_change import FieldChange, first_difference
from kube.objects import Json, digest
from kube.semantic import covers, merge_patch, semantically_equal
from member import labels
from member.apply.last_applied import Record, read_record
from member.apply.server_defaults import is_default
from member.objects.stateful_set import is_rolling, lowest_restarted

_NOT_COMPARED = frozenset(
    {"replicas", "updateStrategy", "volumeClaimTemplates", "podManagementPolicy", "serviceName", "selector"}
)
"""What has a size and a strategy of its own to be compared with, or can't be changed."""

_TEMPLATE = "template"

_FREE_KEYS = frozenset({"labels", "annotations", "matchLabels", "nodeSelector"})
"""Maps with keys of the user's choosing."""


@dataclass(frozen=True, slots=True)
class ForeignEdit:
    """An edit by others: the fields of the spec that it is in, and the first change, from what we wrote."""

    fields: tuple[str, ...]
    change: FieldChange

    @property
    def hits_pods(self) -> bool:
        """Whether pods that are restarted, or made anew, come to it."""
        return _TEMPLATE in self.fields


def foreign_edit(live: Json) -> ForeignEdit | None:
    """What others have changed in a StatefulSet; None where nothing, or where nothing tells what was written.

    Replicas are not looked at, and of the update strategy only whether it restarts pods that ours would not.
    """
    record = read_record(live)
    if record is None:
        return None
    changes = dict(_changes(live, record))
    return ForeignEdit(tuple(changes), next(iter(changes.values()))) if changes else None


def _changes(live: Json, record: Record) -> Iterator[tuple[str, FieldChange]]:
    if not _is_as_we_left_it(live):
        additions_count = _written_generation(live) is not None or is_rolling(live)
        not_compared = _NOT_COMPARED | ({_TEMPLATE} if _has_admitted_template(live) else set())
        for field in dict.fromkeys([*record.spec, *live["spec"]]):
            if field not in not_compared and (change := _change(field, live["spec"], record.spec, additions_count)):
                yield field, change
    ours, there = record.spec.get("updateStrategy"), live["spec"]["updateStrategy"]
    replicas = live["spec"]["replicas"]
    if ours and lowest_restarted(there, replicas) < lowest_restarted(ours, replicas):
        change = first_difference(ours, there, "spec.updateStrategy", semantically_equal)
        assert change is not None  # they reach different pods
        yield "updateStrategy", change


def _change(field: str, live: Json, ours: Json, additions_count: bool) -> FieldChange | None:
    one, other = ({field: spec[field]} if field in spec else {} for spec in (live, ours))
    if not covers(one, other):
        found = first_difference(one, other, "spec", covers)
        return FieldChange(found.path, found.new, found.old) if found else None
    return _addition(one, other, "spec") if additions_count else None


def _addition(there: Any, ours: Any, path: str) -> FieldChange | None:
    """The first field that is there, is not ours, and is none that the API server adds."""
    if there == ours:
        return None
    if isinstance(there, dict) and isinstance(ours, dict):
        return next(filter(None, (_added_key(key, there, ours, path) for key in there)), None)
    if isinstance(there, list) and isinstance(ours, list):
        by_name = {_name(each, index): each for index, each in enumerate(ours)}
        pairs = ((index, each, by_name.get(_name(each, index))) for index, each in enumerate(there))
        return next(filter(None, (_addition(each, known, f"{path}[{index}]") for index, each, known in pairs)), None)
    return None


def _added_key(key: str, there: Json, ours: Json, path: str) -> FieldChange | None:
    value, known, below = there[key], ours.get(key), f"{path}.{key}"
    free = path.rpartition(".")[2] in _FREE_KEYS
    if known is None and not free and is_default(key, value, there):
        return None
    if known is not None or isinstance(value, dict):
        return _addition(value, {} if known is None else known, below)
    says_something = free or not semantically_equal({key: value}, {})
    return FieldChange(below, None, value) if says_something else None


def _name(item: Any, index: int) -> object:
    return item.get("name", index) if isinstance(item, dict) else index


# The generation after our last write


def _is_as_we_left_it(live: Json) -> bool:
    written = _written_generation(live)
    uid, generation = live["metadata"].get("uid"), live["metadata"].get("generation", 0)
    # a write that an admission webhook has made void leaves the generation as it was
    return written is not None and written[0] == uid and generation in (written[1] - 1, written[1])


def _written_generation(live: Json) -> tuple[str, int] | None:
    """The UID and the generation after our last write; no UID in one that we have created and not written since."""
    text = (live["metadata"].get("annotations") or {}).get(labels.WRITTEN_GENERATION, "")
    uid, _, generation = text.partition("/")
    return (uid, int(generation)) if generation.isdecimal() else None


def with_written_generation(desired: Json, live: Json | None = None, applied: Json | None = None) -> Json:
    """`desired`, noting the generation that writing it will give the StatefulSet; `applied` as in `kube.apply`."""
    note = "/1"
    if live is not None:
        before = {"spec": applied["spec"]} if applied else None
        changes = merge_patch({"spec": live["spec"]}, {"spec": desired["spec"]}, before) is not None
        note = f"{live['metadata'].get('uid', '')}/{live['metadata'].get('generation', 0) + changes}"
    return labels.with_annotation(desired, labels.WRITTEN_GENERATION, note)


# What admission has made of the pod template


def admitted_template(written: Json) -> str | None:
    """What to remember of the pod template in the answer to our write; None where that is as it was written."""
    record = read_record(written)
    if record is None or _change(_TEMPLATE, written["spec"], record.spec, additions_count=True) is None:
        return None
    return _digest(written)


def _has_admitted_template(live: Json) -> bool:
    noted = (live["metadata"].get("annotations") or {}).get(labels.ADMITTED_TEMPLATE)
    return noted is not None and noted == _digest(live)


def _digest(live: Json) -> str:
    return digest(live["spec"][_TEMPLATE]).hex()

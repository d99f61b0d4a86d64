"""Foreign edits: changes that other clients made in the spec of a StatefulSet since the operator wrote it last.

The record says what the operator wrote. A live value that contradicts it is a foreign edit. An additional value is one
as well, unless it is a default of the API server. But admission webhooks also change each write. To distinguish the
two, the operator notes in an annotation which generation its last write gave the StatefulSet. Differences that exist at
that generation come from admission, and stay.

Any later write by another client, such as `kubectl scale`, ends that generation. The operator therefore also records a
digest of the pod template in the API server's answer to its write: a template with that digest contains no foreign
edit.

Without these annotations, e.g. after v1.6, all pods may long since run an addition. Then only values that contradict
the record count as edits, and additions only while a roll is unfinished.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kube.field_change import FieldChange, first_difference
from kube.objects import Json, digest
from kube.semantic import covers, merge_patch, semantically_equal
from member import labels
from member.apply.last_applied import Record, read_record
from member.apply.record_shape import is_default
from member.objects.stateful_set import is_rolling, lowest_restarted

_NOT_COMPARED = frozenset(
    {"replicas", "updateStrategy", "volumeClaimTemplates", "podManagementPolicy", "serviceName", "selector"}
)
"""Fields that have a comparison of their own, or are immutable."""

_TEMPLATE = "template"

_FREE_KEYS = frozenset({"labels", "annotations", "matchLabels", "nodeSelector"})
"""Maps whose keys the user chooses."""


@dataclass(frozen=True, slots=True)
class ForeignEdit:
    """A foreign edit: the fields of the spec that contain it, and the first change, as seen from the record."""

    fields: tuple[str, ...]
    change: FieldChange

    @property
    def hits_pods(self) -> bool:
        """True if pods that are restarted or recreated get the edit."""
        return _TEMPLATE in self.fields


def foreign_edit(live: Json) -> ForeignEdit | None:
    """The foreign edit in a StatefulSet; None if there is none, or no record.

    Ignores the replicas. Of the update strategy only one thing counts: whether it restarts pods that the recorded one
    would not.
    """
    record = read_record(live)
    if record is None:
        return None
    changes = dict(_changes(live, record))
    return ForeignEdit(tuple(changes), next(iter(changes.values()))) if changes else None


def _changes(live: Json, record: Record) -> Iterator[tuple[str, FieldChange]]:
    if not _is_unedited(live):
        additions_count = _written_generation(live) is not None or is_rolling(live)
        not_compared = _NOT_COMPARED | ({_TEMPLATE} if _has_admitted_template(live) else set())
        for field in dict.fromkeys([*record.spec, *live["spec"]]):
            if field not in not_compared and (change := _change(field, live["spec"], record.spec, additions_count)):
                yield field, change
    ours, there = record.spec.get("updateStrategy"), live["spec"]["updateStrategy"]
    if ours and lowest_restarted(live) < lowest_restarted(live, ours):
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
    """The first live field that is neither in the record nor a default of the API server."""
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


# The generation after the operator's last write


def _is_unedited(live: Json) -> bool:
    written = _written_generation(live)
    uid, generation = live["metadata"].get("uid"), live["metadata"].get("generation", 0)
    # a write whose changes an admission webhook reverts does not raise the generation
    return written is not None and written[0] == uid and generation in (written[1] - 1, written[1])


def _written_generation(live: Json) -> tuple[str, int] | None:
    """The UID and generation after the last write; the UID is empty if that was the creation."""
    text = (live["metadata"].get("annotations") or {}).get(labels.WRITTEN_GENERATION, "")
    uid, _, generation = text.partition("/")
    return (uid, int(generation)) if generation.isdecimal() else None


def with_written_generation(desired: Json, live: Json | None = None, applied: Json | None = None) -> Json:
    """`desired` with a note of the generation that this write will produce; `applied` as in `kube.apply`."""
    note = "/1"
    if live is not None:
        before = {"spec": applied["spec"]} if applied else None
        changes = merge_patch({"spec": live["spec"]}, {"spec": desired["spec"]}, before) is not None
        note = f"{live['metadata'].get('uid', '')}/{live['metadata'].get('generation', 0) + changes}"
    return labels.with_annotation(desired, labels.WRITTEN_GENERATION, note)


# What admission made of the pod template


def admitted_template(written: Json) -> str | None:
    """The digest of the pod template in the answer to a write; None if admission did not change it."""
    record = read_record(written)
    if record is None or _change(_TEMPLATE, written["spec"], record.spec, additions_count=True) is None:
        return None
    return _digest(written)


def _has_admitted_template(live: Json) -> bool:
    noted = (live["metadata"].get("annotations") or {}).get(labels.ADMITTED_TEMPLATE)
    return noted is not None and noted == _digest(live)


def _digest(live: Json) -> str:
    return digest(live["spec"][_TEMPLATE]).hex()

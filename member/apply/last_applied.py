"""The record of the last write in an object, and differences from it (objects.md 2.3, 11.1 to 11.5).

A StatefulSet or Service carries, in an annotation, the spec that the operator wrote last. The desired spec is compared
with this record, as the live spec is full of the API server's defaults. The annotation is the one of v1.6, so that both
versions understand each other's records.

The record also lists the labels and annotations that the user asked for. The operator removes them when the user no
longer asks for them; keys of other clients stay.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import msgspec

from kube.field_change import FieldChange, first_difference
from kube.objects import Json
from kube.semantic import covers, semantically_equal
from member import labels
from member.apply.record_shape import PodShape, RecordShape, shaped_as, without_defaults
from member.objects.services import without_allocated
from ports.structs import UNREADABLE

_METADATA = "metadata"
"""The key for metadata, beside the fields of the spec. v1.6 ignores it."""

_OWN_LABELS = frozenset({labels.NAME, labels.MANAGED_BY, labels.INSTANCE, labels.COMPONENT, labels.USED_BY})

_OWN_ANNOTATIONS = frozenset(
    {
        labels.LAST_APPLIED,
        labels.WRITTEN_FOR,
        labels.WRITTEN_GENERATION,
        labels.ADMITTED_TEMPLATE,
        labels.REQUEUED_AT,
        labels.START_SCRIPT_OPTIONS,
    }
)

_FIXED = ("volumeClaimTemplates", "podManagementPolicy", "serviceName", "selector")
"""The fields of a StatefulSet that Kubernetes does not allow to change."""

_RECORDS = 64
"""The number of cached records: more than the parallel reconciles read."""

_OUR_SCRIPT = "Made by tidb-operator from the TidbCluster."
"""A line that each start script of this operator contains."""


@dataclass(frozen=True, slots=True)
class Record:
    """The spec that an object was last given, and the metadata keys that the user requested.

    All readers of a record share one instance and must not change it.
    """

    spec: Json
    labels: tuple[str, ...] = ()
    annotations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StatefulSetDifference:
    """The differences between a StatefulSet and the desired one; None for a part without any.

    `template_change` makes pods restart. `orphan`: the owner reference is missing or wrong. `unrecorded`: the record is
    missing.
    """

    template_change: FieldChange | None
    replicas_change: FieldChange | None
    strategy_change: FieldChange | None
    metadata_change: FieldChange | None
    orphan: bool
    unrecorded: bool

    @property
    def nothing(self) -> bool:
        """True if nothing needs to be written."""
        return self.first is None and not self.orphan and not self.unrecorded

    @property
    def first(self) -> FieldChange | None:
        """The most important change, for messages that name one."""
        changes = (
            self.template_change,
            self.replicas_change,
            self.strategy_change,
            self.metadata_change,
        )
        return next((change for change in changes if change is not None), None)


def read_record(live: Json) -> Record | None:
    """The record of a StatefulSet or Service; None if it is missing or unreadable."""
    record = _record(_annotations(live).get(labels.LAST_APPLIED) or "")
    template = (live.get("spec") or {}).get("template") or {}
    if record is None or (template and not record.spec.get("template")):
        return None
    if (note := _template_note(template)) and note != _template_note(record.spec["template"]):
        # v1.0 wrote its note into the template after computing the record, and v1.6 keeps the live note
        return replace(record, spec={**record.spec, "template": _with_template_note(record.spec["template"], note)})
    return record


@lru_cache(maxsize=_RECORDS)
def _record(text: str) -> Record | None:
    """The record in an annotation; cached, as many steps of a reconcile read the same one."""
    spec = _read(text, RecordShape)
    if spec is None:
        return None
    metadata = spec.pop(_METADATA, None) or {}
    return Record(spec, tuple(metadata.get("labels") or ()), tuple(metadata.get("annotations") or ()))


def stamped(desired: Json, live: Json | None = None) -> Json:
    """`desired`, a StatefulSet or Service, with its own record.

    Keeps the record of the `live` object if it has the same meaning: a different notation is no reason to write.
    """
    record = _record_of(desired)
    before = read_record(live) if live is not None else None
    text = _text(record)
    if live is not None and before is not None and _says_the_same(before, record, live):
        text = _annotations(live)[labels.LAST_APPLIED]
    return labels.with_annotation(desired, labels.LAST_APPLIED, text)


def applied(live: Json) -> Json | None:
    """The state that was applied last, in the shape of the desired object, for `kube.apply`; None if unknown."""
    if live.get("kind") == "Deployment":
        return _applied_deployment(live)
    record = read_record(live)
    if record is None:
        return None
    there = live["metadata"]
    metadata = {
        "labels": {key: there["labels"][key] for key in record.labels if key in (there.get("labels") or {})},
        "annotations": {key: _annotations(live)[key] for key in record.annotations if key in _annotations(live)},
    }
    return {"metadata": metadata, "spec": record.spec}


def compare_stateful_set(live: Json, desired: Json) -> StatefulSetDifference:
    """The differences between `live` and `desired`.

    The pod template is compared with the record, or with the live one if there is no record. Replicas and update
    strategy are also compared with the live ones, so that manual changes are found. Of the metadata, only keys that the
    operator writes count.
    """
    record = read_record(live)
    return StatefulSetDifference(
        template_change=template_change(live, desired),
        replicas_change=_changed(live, desired, "replicas"),
        strategy_change=_strategy_change(record, live, desired),
        metadata_change=_metadata_change(record, live, desired),
        orphan=_is_orphan(live, desired),
        unrecorded=record is None,
    )


def template_change(live: Json, desired: Json) -> FieldChange | None:
    """The first field in which the pod templates differ, compared as in `compare_stateful_set`.

    It does not matter whether a default of the API server is written out, as the pods are the same. `desired` already
    contains what it may keep of the running template (`with_running_template`).
    """
    record, new = read_record(live), desired["spec"]["template"]
    running = live["spec"].get("template") or {}
    if record is None:
        return _first_template_difference(running, new, covers)
    old = record.spec.get("template") or {}
    if old == new:
        return None
    bare_old, bare_new = without_defaults(old), without_defaults(new)
    if not semantically_equal(bare_old, bare_new):
        # name a field that the user changed, not a default
        return _first_template_difference(bare_old, bare_new, semantically_equal)
    if covers(running, new):
        # the API server, or a webhook, has set the same values
        return None
    return _first_template_difference(old, new, semantically_equal)


def _first_template_difference(old: Json, new: Json, same: Callable[[Json, Json], bool]) -> FieldChange | None:
    return first_difference(old.get("spec") or {}, new["spec"], "spec.template.spec", same) or first_difference(
        old.get("metadata") or {}, new["metadata"], "spec.template.metadata", same
    )


def same_template(one: Json, other: Json) -> bool:
    """True if two pod templates lead to the same pods; defaults of the API server may be written out in either."""
    return one == other or semantically_equal(without_defaults(one), without_defaults(other))


def with_running_template(live: Json, desired: Json, before: Callable[[], Json | None] = lambda: None) -> Json:
    """`desired`, but in the running template's notation where only the notation has changed since.

    `before` builds what this version would have desired when the running template was written; it returns None if
    unknown. A start script that differs from that one contains a change by the user.
    """
    record = read_record(live)
    if record is None:
        return desired
    template, old = desired["spec"]["template"], record.spec.get("template") or {}
    kept = template | {"spec": _as_written_before(live, old.get("spec") or {}, template["spec"], before)}
    return desired | {"spec": desired["spec"] | {"template": _with_template_note(kept, _template_note(old))}}


def as_recorded(live: Json, metadata: Json) -> Json:
    """The StatefulSet that was written last, at least with this `metadata`. Raises ValueError without a record."""
    before = applied(live)
    if before is None:
        raise ValueError(f"StatefulSet {live['metadata']['name']} has no record of what was written last")
    wished = {kind: {**metadata.get(kind, {}), **keys} for kind, keys in before["metadata"].items()}
    given = metadata | {kind: keys for kind, keys in wished.items() if keys}
    return {"apiVersion": live["apiVersion"], "kind": "StatefulSet", "metadata": given, "spec": before["spec"]}


def with_template_of(live: Json, desired: Json) -> Json:
    """`desired` with the pod template in the record of `live`; without a record, with the live one if it differs."""
    record = read_record(live)
    if record is None and covers(live["spec"]["template"], desired["spec"]["template"]):
        return desired
    template = (record.spec if record else live["spec"])["template"]
    return desired | {"spec": desired["spec"] | {"template": template}}


def fixed_field_change(live: Json, desired: Json) -> FieldChange | None:
    """The first field that differs although a StatefulSet cannot change it, such as the size of a volume.

    A value that equals the record does not count, even if admission changed it: admission would change it again.
    """
    record = read_record(live)
    wanted = _fixed(desired["spec"])
    change = first_difference(_fixed(live["spec"]), wanted, "spec", covers)
    return change if record is None or not covers(_fixed(record.spec), wanted) else None


def _fixed(spec: Json) -> Json:
    return {field: spec.get(field) for field in _FIXED}


def with_fixed_fields(live: Json, desired: Json) -> Json:
    """`desired` with the immutable fields as they are, so that the rest can be written (11.5)."""
    record = read_record(live)
    there = record.spec if record else live["spec"]
    if record is None and fixed_field_change(live, desired) is None:
        # keep the desired notation, without the server's defaults
        there = desired["spec"]
    fixed = {field: there[field] for field in _FIXED if field in there}
    free = {field: value for field, value in desired["spec"].items() if field not in _FIXED}
    return desired | {"spec": free | fixed}


def missing_volumes(live: Json, desired: Json) -> list[str]:
    """Volumes that a container of `desired` mounts but that neither its template nor the claims of `live` have (11.5).

    Claim templates are immutable: a pod with such a mount could never be created.
    """
    pod = desired["spec"]["template"]["spec"]
    known = {volume["name"] for volume in pod.get("volumes") or ()}
    known |= {claim["metadata"]["name"] for claim in live["spec"].get("volumeClaimTemplates") or ()}
    mounts = (mount for container in pod["containers"] for mount in container.get("volumeMounts") or ())
    # the API server rejects a mount without a name, with a message that says where it is
    return list(dict.fromkeys(mount["name"] for mount in mounts if mount.get("name", "") not in {*known, ""}))


def _read(text: str, shape: type[RecordShape | PodShape]) -> Json | None:
    """The JSON in an annotation; None if it does not have the shape."""
    try:
        return shaped_as(msgspec.json.decode(text), shape)
    except UNREADABLE:
        return None


def _record_of(desired: Json) -> Record:
    metadata = desired["metadata"]
    return Record(
        desired["spec"],
        tuple(sorted(metadata.get("labels", {}).keys() - _OWN_LABELS)),
        tuple(sorted(metadata.get("annotations", {}).keys() - _OWN_ANNOTATIONS)),
    )


def _text(record: Record) -> str:
    keys = {"labels": list(record.labels), "annotations": list(record.annotations)}
    wished = {kind: names for kind, names in keys.items() if names}
    tree = {**record.spec, _METADATA: wished} if wished else record.spec
    return json.dumps(tree, separators=(",", ":"), ensure_ascii=False)


def _says_the_same(one: Record, other: Record, live: Json) -> bool:
    if (one.labels, one.annotations) != (other.labels, other.annotations):
        return False
    specs = (one.spec, other.spec)
    if live.get("kind") == "Service":
        # v1.6 records a node port that Kubernetes has chosen, and this version does not
        specs = (without_allocated(one.spec, live["spec"]), without_allocated(other.spec, live["spec"]))
    return semantically_equal(*specs)


def _applied_deployment(live: Json) -> Json | None:
    spec = _read(_annotations(live).get(labels.LAST_APPLIED_POD_TEMPLATE) or "", PodShape)
    return {"spec": {"template": {"spec": spec}}} if spec is not None else None


def _changed(live: Json, desired: Json, field: str) -> FieldChange | None:
    old, new = live["spec"].get(field), desired["spec"].get(field)
    return None if old == new else FieldChange(f"spec.{field}", old, new)


def _strategy_change(record: Record | None, live: Json, desired: Json) -> FieldChange | None:
    new = desired["spec"]["updateStrategy"]
    path = "spec.updateStrategy"
    change = first_difference(live["spec"].get("updateStrategy") or {}, new, path, covers)
    if change is not None or record is None:
        return change
    return first_difference(record.spec.get("updateStrategy") or {}, new, path, semantically_equal)


def _metadata_change(record: Record | None, live: Json, desired: Json) -> FieldChange | None:
    """The first of the operator's labels or annotations that is wrong, missing, or no longer wanted."""
    wished = record or Record({})
    for kind, keys in (("labels", wished.labels), ("annotations", wished.annotations)):
        there, wanted = live["metadata"].get(kind) or {}, desired["metadata"].get(kind) or {}
        for key in dict.fromkeys([*wanted, *keys]):
            if key not in _OWN_ANNOTATIONS and there.get(key) != wanted.get(key):
                return FieldChange(f"metadata.{kind}[{key}]", there.get(key), wanted.get(key))
    return None


def _is_orphan(live: Json, desired: Json) -> bool:
    there = live["metadata"].get("ownerReferences") or ()
    wanted = desired["metadata"].get("ownerReferences") or ()
    return not all(any(owner.items() <= each.items() for each in there) for owner in wanted)


def _template_note(template: Json) -> str | None:
    """The note on the pod spec that TiDB Operator v1.0 wrote into the pod template itself.

    v1.6 keeps it, as its removal would restart every pod, and ignores it in comparisons (objects.md 11.5).
    """
    note: str | None = ((template.get("metadata") or {}).get("annotations") or {}).get(labels.LAST_APPLIED)
    return note


def _with_template_note(template: Json, note: str | None) -> Json:
    if not note:
        return template
    metadata = template.get("metadata") or {}
    annotations = {**(metadata.get("annotations") or {}), labels.LAST_APPLIED: note}
    return {**template, "metadata": {**metadata, "annotations": annotations}}


def _as_written_before(live: Json, old: Json, new: Json, before: Callable[[], Json | None]) -> Json:
    """The new pod spec, with v1.6's topology selectors and start script if nothing else differs from the old one."""
    kept = _with_old_topology(live, old, _with_old_script(old, new, before))
    return kept if semantically_equal(old, kept) else _with_old_topology(live, old, new)


def _with_old_script(old: Json, new: Json, before: Callable[[], Json | None]) -> Json:
    """The new pod spec with v1.6's script in place of this version's script in a container's command (objects.md 6.3).

    A new script restarts every pod, so it waits for another change, e.g. of one of the script's inputs.
    """
    kept = {}
    for kind, running in _inline_scripts(old).items():
        kept[kind] = [_with_script(each, running.get(each["name"], "")) for each in new.get(kind) or ()]
    with_old = new | {kind: containers for kind, containers in kept.items() if containers}
    if with_old == new or (then := before()) is None:
        return with_old
    is_the_same = _inline_scripts(then["spec"]["template"]["spec"]) == _inline_scripts(new)
    return with_old if is_the_same else new


def _inline_scripts(pod: Json) -> dict[str, dict[str, str]]:
    """The scripts in commands, by kind and name of their containers."""
    kinds = ("containers", "initContainers")
    return {kind: {each["name"]: _inline_script(each) for each in pod.get(kind) or ()} for kind in kinds}


def _with_script(container: Json, running: str) -> Json:
    own = _inline_script(container)
    if not running or _OUR_SCRIPT in running or _OUR_SCRIPT not in own:
        return container
    words = {key: container[key] for key in ("command", "args") if key in container}
    return container | {key: [running if each == own else each for each in kept] for key, kept in words.items()}


def _inline_script(container: Json) -> str:
    """The script in a container's command and arguments; empty if there is none."""
    words: list[str] = [*(container.get("command") or ()), *(container.get("args") or ())]
    return words[2] if len(words) == 3 and words[:2] == ["/bin/sh", "-c"] else ""


def _with_old_topology(live: Json, old: Json, new: Json) -> Json:
    """The new pod spec with v1.6's topology selectors if nothing else differs (objects.md 3.4).

    v1.6 selects the cluster's name instead of the instance's. The correction restarts every pod, so it waits for
    another change.
    """
    before = old.get("topologySpreadConstraints")
    if not before:
        return new
    put_right = [_of_instance(constraint, live) for constraint in before]
    if not semantically_equal({**old, "topologySpreadConstraints": put_right}, new):
        return new
    return {**new, "topologySpreadConstraints": before}


def _of_instance(constraint: Json, live: Json) -> Json:
    """A constraint of v1.6, corrected to select the instance instead of the cluster's name."""
    cluster = next((owner["name"] for owner in live["metadata"].get("ownerReferences") or ()), "")
    selector = constraint["labelSelector"]["matchLabels"]
    if selector.get(labels.INSTANCE) != cluster:
        return constraint
    instance = live["metadata"]["labels"][labels.INSTANCE]
    return {**constraint, "labelSelector": {"matchLabels": {**selector, labels.INSTANCE: instance}}}


def _annotations(live: Json) -> dict[str, str]:
    return live["metadata"].get("annotations") or {}

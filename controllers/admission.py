"""The judgement of a written object at admission: what the operator would refuse, and what it would ignore.

It asks the functions that a reconcile asks, and answers with the sentences of the conditions:

    error      the object would get the condition InvalidSpec
    warning    a condition would name fields without effect; or the write is accepted although the spec is invalid

A write is refused only if it adds a problem. The operator's writes (status, finalizers), deletions, labels and repairs
of a part of an invalid spec always pass.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import IntEnum
from typing import Any, Generic, TypeVar

import msgspec

from apis.backup_defaulting import (
    with_backup_defaults,
    with_compact_defaults,
    with_restore_defaults,
    with_schedule_defaults,
)
from apis.backup_schedules import BackupSchedule
from apis.backups import Backup
from apis.cluster import FIELDS_IGNORED, SETTINGS_OVERRIDDEN
from apis.compact_backups import CompactBackup
from apis.decoding import decode_json
from apis.model import Model
from apis.problem import InvalidField, Problem
from apis.restores import Restore
from apis.tidbcluster import TidbCluster
from apis.unknown_fields import UNKNOWN_FIELDS
from apis.validation.backup_schedules import validate_backup_schedule
from apis.validation.backups import validate_backup, validate_compact, validate_restore
from controllers.conditions import INVALID
from controllers.dashboard.kind import TIDB_DASHBOARD
from controllers.dmcluster.kind import DM_CLUSTER
from controllers.initializer.kind import TIDB_INITIALIZER
from controllers.kind import Kind
from controllers.ng_monitoring.kind import TIDB_NG_MONITORING, overridden
from controllers.simple_kind import SimpleKind
from controllers.tidbcluster.kind import TIDB_CLUSTER
from controllers.tidbmonitor.controller import TIDB_MONITOR
from controllers.unheeded import message_of, of_cluster
from controllers.unknown_fields import sentence
from kube.objects import Json, Object
from kube.reading import IndexFunc
from kube.resources import BACKUP_SCHEDULES, BACKUPS, COMPACT_BACKUPS, RESTORES, Resource
from member.context import Dependencies, Listers
from member.fields.ignored import ignored_by
from member.tiproxy.component import across_kubernetes
from ports.foreign_text import printable

M = TypeVar("M", bound=Model)

_INDEX = re.compile(r"\[\d+\]")


class Step(IntEnum):
    """How far the reading of a spec comes. A problem at one step hides the problems of the next ones."""

    DECODED = 0
    JUDGED_BY_ITSELF = 1
    JUDGED_BY_WHAT_RUNS = 2
    ACCEPTED = 3


@dataclass(frozen=True, slots=True)
class Finding:
    """The problems of a spec, and the step that found them; ACCEPTED without problems."""

    step: Step
    problems: Sequence[Problem] = ()

    def adds_to(self, before: "Finding") -> bool:
        """True if an object with the finding `before` has got a problem. One that moved in a list is the same."""
        if self.step is not before.step:
            return self.step < before.step
        if self.step is Step.DECODED:
            return False  # only the first undecodable field is found
        return bool(_places(self) - _places(before))


def _places(finding: Finding) -> Counter[str]:
    return Counter(_INDEX.sub("[]", problem.field) for problem in finding.problems)


@dataclass(frozen=True, slots=True)
class Verdict:
    """`refusal` is empty if the write is accepted."""

    refusal: str = ""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Judge(Generic[M]):
    """The functions that judge the objects of a kind.

    - `mistakes`: as in `Kind`.
    - `contradictions`: the problems given what runs; the second argument is True for an object that is being created.
    - `unheeded`: what has no effect in the spec of a valid object, by type of condition.
    - `works_on`: True if the operator no longer looks at the spec of an object with this status.
    """

    resource: Resource
    model: type[M]
    defaults: Callable[[M], M]
    mistakes: Callable[[M], Sequence[Problem]]
    unheeded: Callable[[M, Json], Mapping[str, Sequence[Problem]]]
    contradictions: Callable[[M, bool], Sequence[Problem]] = lambda _model, _is_new: ()
    works_on: Callable[[Json], bool] = lambda _status: False

    def verdict(self, new: Object, old: Object | None) -> Verdict:
        """Judge a write; `old` is the object before an update, None for a creation."""
        if new.metadata.deletion_timestamp or (old is not None and _is_same(new, old)):
            return Verdict()
        model, finding = self._find(new, is_new=old is None)
        warnings = tuple(self._warnings(new, model if finding.step is Step.ACCEPTED else None))
        if not finding.problems:
            return Verdict(warnings=warnings)
        message = "; ".join(map(str, finding.problems))
        if old is None or self._is_refused(finding, new, old):
            return Verdict(message, warnings)
        return Verdict(warnings=(_shown(INVALID, message), *warnings))

    def _is_refused(self, found: Finding, new: Object, old: Object) -> bool:
        tree = new.decode()
        if tree.get("spec") == old.decode().get("spec") or self.works_on(tree.get("status") or {}):
            return False
        return found.adds_to(self._find(old, is_new=False)[1])

    def _find(self, obj: Object, *, is_new: bool) -> tuple[M | None, Finding]:
        try:
            model = self.defaults(decode_json(obj.raw, self.model))
        except InvalidField as error:
            return None, Finding(Step.DECODED, error.problems)
        if mistakes := self.mistakes(model):
            return model, Finding(Step.JUDGED_BY_ITSELF, mistakes)
        if contradictions := self.contradictions(model, is_new):
            return model, Finding(Step.JUDGED_BY_WHAT_RUNS, contradictions)
        return model, Finding(Step.ACCEPTED)

    def _warnings(self, obj: Object, accepted: M | None) -> list[str]:
        unknown = sentence(obj, self.model)
        found = [_shown(UNKNOWN_FIELDS, unknown)] if unknown else []
        if accepted is None:
            return found
        unheeded = self.unheeded(accepted, obj.decode().get("spec") or {})
        found += [_shown(kind, message_of(problems)) for kind, problems in unheeded.items() if problems]
        if isinstance(accepted, TidbCluster) and (refused := across_kubernetes(accepted)):
            found.append(_shown(refused.reason, refused.message))
        return found


def _shown(reason: str, message: str) -> str:
    return printable(f"{reason}: {message}")


def _is_same(new: Object, old: Object) -> bool:
    """True if a write leaves all that a judgement reads except the status."""
    before, after = old.metadata, new.metadata
    if (before.labels, before.annotations) != (after.labels, after.annotations):
        return False
    return old.decode().get("spec") == new.decode().get("spec")


def judges(deps: Dependencies, is_synced: Callable[[], bool]) -> Mapping[tuple[str, str], Judge[Any]]:
    """The judges of all kinds, by group and plural. What runs is read from the caches of `deps` once they have synced.

    A new object is judged as if nothing ran: what the caches may show belongs to an earlier object of its name.
    """
    fresh = replace(deps, listers=_empty_listers())

    def of_clusters(kind: Kind[Any, Any, Dependencies, Any]) -> Judge[Any]:
        def contradictions(model: Model, is_new: bool) -> Sequence[Problem]:
            if is_new:
                return kind.problems(model, fresh)
            return kind.problems(model, deps) if is_synced() else ()

        return Judge(
            resource=kind.resource,
            model=kind.model,
            defaults=kind.defaults,
            mistakes=kind.mistakes,
            contradictions=contradictions,
            unheeded=of_cluster,
        )

    found = [
        *(of_clusters(kind) for kind in (TIDB_CLUSTER, DM_CLUSTER)),
        *(_of_simple_kind(kind) for kind in (TIDB_MONITOR, TIDB_INITIALIZER, TIDB_DASHBOARD)),
        replace(_of_simple_kind(TIDB_NG_MONITORING), unheeded=_of_ng_monitoring),
        *_OF_JOBS,
    ]
    return {(each.resource.group, each.resource.plural): each for each in found}


def _ignored(kind: str) -> Callable[[Any, Json], Mapping[str, Sequence[Problem]]]:
    return lambda _model, spec: {FIELDS_IGNORED: ignored_by(kind, spec)}


def _of_ng_monitoring(model: Any, spec: Json) -> Mapping[str, Sequence[Problem]]:
    ignored = ignored_by(TIDB_NG_MONITORING.resource.kind, spec)
    return {FIELDS_IGNORED: ignored, SETTINGS_OVERRIDDEN: overridden(model)}


def _of_simple_kind(kind: SimpleKind[Any]) -> Judge[Any]:
    return Judge(
        resource=kind.resource,
        model=kind.model,
        defaults=kind.defaults,
        mistakes=kind.problems,
        unheeded=_ignored(kind.resource.kind),
    )


def _has_begun(status: Json) -> bool:
    """True if a Job has been started for an object, whose spec counts no longer then."""
    return (status.get("phase") or status.get("state") or INVALID) not in (INVALID, "Invalid")


def _of_jobs(
    resource: Resource,
    model: type[M],
    defaults: Callable[[M], M],
    mistakes: Callable[[M], Sequence[Problem]],
    works_on: Callable[[Json], bool] = _has_begun,
) -> Judge[M]:
    return Judge(
        resource=resource,
        model=model,
        defaults=defaults,
        mistakes=mistakes,
        works_on=works_on,
        unheeded=_ignored(resource.kind),
    )


_OF_JOBS: Sequence[Judge[Any]] = (
    _of_jobs(BACKUPS, Backup, with_backup_defaults, validate_backup),
    _of_jobs(RESTORES, Restore, with_restore_defaults, validate_restore),
    _of_jobs(COMPACT_BACKUPS, CompactBackup, with_compact_defaults, validate_compact),
    _of_jobs(BACKUP_SCHEDULES, BackupSchedule, with_schedule_defaults, validate_backup_schedule, lambda _status: False),
)


class _EmptyLister:
    """A cache without objects."""

    changes = 0

    def get(self, _namespace: str, _name: str) -> Object | None:
        return None

    def by_index(self, _function: IndexFunc, _value: str) -> list[Object]:
        return []

    def list(self, _namespace: str = "", _labels: Mapping[str, str] | None = None) -> list[Object]:
        return []


def _empty_listers() -> Listers:
    return Listers(**{field.name: _EmptyLister() for field in fields(Listers)})


# The review, as the API server sends it


class _GroupResource(msgspec.Struct, frozen=True):
    group: str = ""
    resource: str = ""


class _Request(msgspec.Struct, frozen=True, rename="camel"):
    uid: str
    resource: _GroupResource
    operation: str
    sub_resource: str = ""
    namespace: str = ""
    object: msgspec.Raw = msgspec.Raw(b"null")
    old_object: msgspec.Raw = msgspec.Raw(b"null")


class _Review(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    request: _Request


_reviews = msgspec.json.Decoder(_Review)

_REVIEW = ("admission.k8s.io/v1", "AdmissionReview")
_WRITES = ("CREATE", "UPDATE")
_UNPROCESSABLE = 422


class BadReview(ValueError):
    """Raised for a body that is not a review."""


def review(body: bytes, judge_of: Mapping[tuple[str, str], Judge[Any]], manages: Callable[[Object], bool]) -> Json:
    """The answer to an AdmissionReview. Objects that the operator does not manage are accepted. Raises BadReview."""
    request = _request(body)
    judge = judge_of.get((request.resource.group, request.resource.resource))
    verdict = Verdict()
    if judge is not None and request.operation in _WRITES and not request.sub_resource:
        new, old = _object(request.object), _object(request.old_object)
        if new is None or (old is None) != (request.operation == "CREATE"):
            raise BadReview("object or oldObject does not fit the operation")
        if manages(new):
            verdict = judge.verdict(new, old)
    return _answer(request.uid, verdict)


def _request(body: bytes) -> _Request:
    try:
        found = _reviews.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadReview(printable(str(error))) from error
    if (found.api_version, found.kind) != _REVIEW:
        raise BadReview(f"expected {_REVIEW[1]} of {_REVIEW[0]}")
    return found.request


def _object(raw: msgspec.Raw) -> Object | None:
    """An object of the review. One that is to be named by the API server gets a name of the same length."""
    if bytes(raw) == b"null":
        return None
    try:
        tree = msgspec.json.decode(raw)
        meta = tree["metadata"]
        if not meta.get("name") and meta.get("generateName"):
            tree["metadata"] = meta | {"name": f"{meta['generateName']}xxxxx"}
            return Object(msgspec.json.encode(tree))
        return Object(bytes(raw))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, LookupError, TypeError, AttributeError) as error:
        raise BadReview(f"the object is not readable: {printable(str(error))}") from error


def _answer(uid: str, verdict: Verdict) -> Json:
    response: Json = {"uid": uid, "allowed": not verdict.refusal}
    if verdict.refusal:
        message = printable(verdict.refusal)
        response["status"] = {"code": _UNPROCESSABLE, "reason": "Invalid", "message": message}
    if verdict.warnings:
        response["warnings"] = list(verdict.warnings)
    return {"apiVersion": _REVIEW[0], "kind": _REVIEW[1], "response": response}

"""What the cluster itself says: its spec, and the conditions in which the operator says what it waits for."""

from collections.abc import Iterator
from datetime import timedelta

from apis.cluster_kinds import CLUSTER_MODELS
from apis.components import component_names
from apis.decoding import InvalidField
from apis.defaulting import with_defaults
from apis.ordinals import gated, ignored_slots
from apis.problem import Problem, shown
from apis.unknown_fields import unknown_fields
from apis.validation import validate
from cli.doctor.causes.availability import part_of
from cli.doctor.facts import Facts
from cli.doctor.finding import Cause, Severity, Sign
from cli.reasons.registry import REASONS
from controllers.conditions import INVALID, PROGRESSING, READY
from kube.objects import condition_of
from member.fields.ignored import ignored
from member.fields.settings import overridden
from member.lifecycle.rolling import STANDS_STILL
from member.objects.stateful_set import is_advanced
from member.outcome import DONE

_LONG = timedelta(minutes=30)

_SAID_ELSEWHERE = frozenset({DONE, "Paused", "Suspended", "BadCertificate"})
"""Reasons that need no attention, or that another cause explains better."""

_FOR_USER = frozenset({"NoSuchCluster", "NoPD", "MissingSecret", "ReferenceNotAllowed"})
"""Waits that only the user can end."""

_STEADY_ERRORS = frozenset({"Forbidden", "Unauthorized", "Invalid", "MethodNotAllowed", "CredentialMissing"})
"""Errors of the API server that a retry does not solve."""


def _problems(facts: Facts) -> list[Problem]:
    if isinstance(facts.model, InvalidField):
        return list(facts.model.problems)
    return list(validate(with_defaults(facts.model)))


def _invalid(facts: Facts) -> Iterator[Sign]:
    problems = _problems(facts)
    for problem in problems:
        yield Sign(facts.title, problem.message, problem.field, "" if problem.value is None else str(problem.value))
    progressing = facts.condition(PROGRESSING)
    if not problems and progressing.get("reason") == INVALID and progressing.get("status") == "False":
        yield Sign(facts.title, str(progressing.get("message", "")))


def _stopped(facts: Facts) -> Iterator[Sign]:
    """Steps that the operator takes only after the user has acted; docs/reasons/ has the way out of each reason."""
    progressing = facts.condition(PROGRESSING)
    reason = str(progressing.get("reason", ""))
    if facts.condition(READY).get("reason") == reason:
        # the preceding finding reports the outage
        return
    is_over = progressing.get("status") == "False" and reason not in (*_SAID_ELSEWHERE, INVALID)
    if is_over or reason in _FOR_USER:
        known = REASONS.get(reason)
        way_out = known.you if known else ""
        yield Sign(facts.title, str(progressing.get("message", "")), PROGRESSING, reason, way_out)


def _refused(facts: Facts) -> Iterator[Sign]:
    progressing = facts.condition(PROGRESSING)
    reason = str(progressing.get("reason", ""))
    if progressing.get("status") == "True" and reason in _STEADY_ERRORS:
        yield Sign(facts.title, str(progressing.get("message", "")), PROGRESSING, reason, REASONS[reason].you)


def _slow(facts: Facts) -> Iterator[Sign]:
    ready, progressing = facts.condition(READY), facts.condition(PROGRESSING)
    waits = progressing.get("status") == "True" and str(progressing.get("reason")) not in (
        *_STEADY_ERRORS,
        STANDS_STILL,
    )
    since = ready.get("lastTransitionTime")
    if ready.get("status") == "False" and waits and facts.lasts(since, _LONG):
        duration = " ".join(filter(None, ("has not been Ready", facts.text_of_age(since))))
        message = f"{duration}: {progressing.get('message', '')}"
        yield Sign(facts.title, message, PROGRESSING, str(progressing.get("reason")))


def _stuck(facts: Facts) -> Iterator[Sign]:
    for component in component_names(of=facts.kind):
        progressing = condition_of(part_of(facts, component).get("conditions") or (), PROGRESSING)
        if progressing.get("reason") == STANDS_STILL:
            where = f"status.{component.removeprefix('dm-')}.conditions"
            yield Sign(facts.title, f"{component}: {progressing.get('message', '')}", where, STANDS_STILL)


def _paused(facts: Facts) -> Iterator[Sign]:
    if facts.spec.get("paused"):
        yield Sign(facts.title, "changes of its spec are not carried out", "spec.paused", "true")


def _unknown(facts: Facts) -> Iterator[Sign]:
    for field in unknown_fields({"spec": facts.spec}, CLUSTER_MODELS[facts.kind]):
        yield Sign(facts.title, str(field), field.path)


def _overridden(facts: Facts) -> Iterator[Sign]:
    if facts.valid is not None:
        for problem in overridden(facts.valid):
            yield Sign(facts.title, problem.message, problem.field, shown(problem.value))


def _ignored(facts: Facts) -> Iterator[Sign]:
    if facts.valid is not None:
        for problem in ignored(facts.valid, facts.spec):
            yield Sign(facts.title, problem.message, problem.field, shown(problem.value))


def _slots(facts: Facts) -> Iterator[Sign]:
    advanced = any(is_advanced(stateful_set) for stateful_set in facts.stateful_sets)
    if facts.valid is None or not facts.stateful_sets:
        return
    for slot in ignored_slots(gated(facts.valid, advanced)):
        message = "its delete slots have no effect: its StatefulSets are native ones, which remove their highest pods"
        yield Sign(facts.title, message, f"metadata.annotations[{slot}]", facts.valid.metadata.annotations[slot])


CAUSES = (
    Cause(
        "InvalidSpec",
        "Correct the field.",
        _invalid,
    ),
    Cause(
        "NeedsYou",
        "Read `kubectl describe tidbcluster` and the section on the reason.",
        _stopped,
    ),
    Cause(
        "OperatorRefused",
        "Compare the operator's rights with manifests/operator/; the message names verb and resource.",
        _refused,
    ),
    Cause(
        "RollStuck",
        "See [RollingUpdateStuck](reasons/changes.md#rollingupdatestuck).",
        _stuck,
    ),
    Cause(
        "Slow",
        "Look the reason up in docs/reasons/: it says what the operator waits for, and what you can do.",
        _slow,
        Severity.WARNING,
    ),
    Cause(
        "Paused",
        "`kubectl tidb resume CLUSTER`, or set `spec.paused: false`.",
        _paused,
        Severity.WARNING,
    ),
    Cause(
        "UnknownFields",
        "Write the field that the message names, where it names it; a field that Kubernetes knows may stay.",
        _unknown,
        Severity.WARNING,
    ),
    Cause(
        "SettingsOverridden",
        "Remove the setting, or write what the message says instead.",
        _overridden,
        Severity.WARNING,
    ),
    Cause(
        "DeleteSlotsIgnored",
        "Remove the annotation, or switch the feature on ([A pod in the middle](operations.md#a-pod-in-the-middle)).",
        _slots,
        Severity.WARNING,
    ),
    Cause(
        "FieldsIgnored",
        "Remove it, or write what the message says instead.",
        _ignored,
        Severity.WARNING,
    ),
)

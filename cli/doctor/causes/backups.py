"""Backups and restores of the cluster that fail, wait or have fields without effect, and schedules that create none."""

from collections.abc import Iterator
from functools import partial

from apis.backup_conditions import LOG_STATE_UNREADABLE
from apis.problem import shown
from cli.doctor.facts import Facts, name_of
from cli.doctor.finding import Cause, Severity, Sign
from kube.objects import Json, condition_of
from kube.resources import BACKUP_SCHEDULES, BACKUPS, COMPACT_BACKUPS, RESTORES, Resource
from member.fields.backups import TEMPLATES
from member.fields.ignored import ignored_by

_FAILED = ("Failed", "Invalid")


def _is_of(facts: Facts, tree: Json) -> bool:
    """True if a Backup, a Restore or a schedule's template is for the cluster."""
    spec = tree.get("spec") or {}
    br, source = spec.get("br") or {}, spec.get("from") or spec.get("to") or {}
    host = str(source.get("host", ""))
    named = br.get("cluster") == facts.name and (br.get("clusterNamespace") or facts.namespace) == facts.namespace
    return named or host.split(".", maxsplit=1)[0] == f"{facts.name}-tidb"


def _failed(facts: Facts, resource: Resource) -> Iterator[Sign]:
    for each in facts.all(resource):
        status = each.get("status") or {}
        phase = str(status.get("phase", ""))
        if phase in _FAILED and _is_of(facts, each):
            condition = condition_of(status.get("conditions") or (), phase)
            message = f"{condition.get('reason', '')}: {condition.get('message', '')}".strip(": ") or "says no reason"
            yield Sign(f"{resource.kind} {name_of(each)}", message, "status.phase", phase)


def _waiting(facts: Facts) -> Iterator[Sign]:
    for resource in (BACKUPS, RESTORES):
        for each in filter(partial(_is_of, facts), facts.all(resource)):
            waiting = condition_of((each.get("status") or {}).get("conditions") or (), "Waiting")
            if waiting.get("status") == "True":
                message = (
                    f"{waiting.get('reason')}: {waiting.get('message')} (since {waiting.get('lastTransitionTime')})"
                )
                yield Sign(f"{resource.kind} {name_of(each)}", message, "status.conditions[Waiting]", "True")


def _unreadable(facts: Facts) -> Iterator[Sign]:
    for backup in filter(partial(_is_of, facts), facts.all(BACKUPS)):
        unreadable = condition_of((backup.get("status") or {}).get("conditions") or (), LOG_STATE_UNREADABLE)
        if unreadable.get("status") == "True":
            field = f"status.conditions[{LOG_STATE_UNREADABLE}]"
            yield Sign(f"Backup {name_of(backup)}", str(unreadable.get("message")), field, "True")


def _ignored(facts: Facts) -> Iterator[Sign]:
    for resource in (BACKUPS, RESTORES, BACKUP_SCHEDULES, COMPACT_BACKUPS):
        for each in facts.all(resource):
            spec = each.get("spec") or {}
            parts = [spec, *(spec.get(name) or {} for name in TEMPLATES)]
            is_mine = any(_is_of(facts, {"spec": part}) for part in parts)
            for problem in ignored_by(resource.kind, spec) if is_mine else ():
                value = "" if problem.value is None else shown(problem.value)
                yield Sign(f"{resource.kind} {name_of(each)}", problem.message, problem.field, value)


def _paused(facts: Facts) -> Iterator[Sign]:
    for schedule in facts.all(BACKUP_SCHEDULES):
        spec = schedule.get("spec") or {}
        templates = [{"spec": spec.get(name)} for name in TEMPLATES]
        if spec.get("pause") and any(_is_of(facts, template) for template in templates):
            yield Sign(f"BackupSchedule {name_of(schedule)}", "makes no backups", "spec.pause", "true")


CAUSES = (
    Cause(
        "BackupFailed",
        "`kubectl describe backup`; correct what its message names, then recreate it (docs/backup.md).",
        lambda facts: _failed(facts, BACKUPS),
        Severity.WARNING,
    ),
    Cause(
        "RestoreFailed",
        "`kubectl describe restore`; correct what its message names, then recreate it (docs/backup.md).",
        lambda facts: _failed(facts, RESTORES),
        Severity.WARNING,
    ),
    Cause(
        "BackupWaiting",
        "Look up the reason that its message begins with in docs/reasons/.",
        _waiting,
        Severity.WARNING,
    ),
    Cause(
        "LogBackupUnreadable",
        "Make PD reachable for the operator: check NetworkPolicies and the Secrets of certificates.",
        _unreadable,
        Severity.WARNING,
    ),
    Cause(
        "SchedulePaused",
        "Set `spec.pause: false`.",
        _paused,
        Severity.WARNING,
    ),
    Cause(
        "BackupFieldsIgnored",
        "Remove it, or write what the message says instead.",
        _ignored,
        Severity.WARNING,
    ),
)

"""The Backups and schedules of a namespace as commands use them, and the wait for a Backup or Restore to end."""

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from apis import tso
from apis.backup_defaulting import with_backup_defaults, with_schedule_defaults
from apis.backup_schedules import BackupSchedule
from apis.backups import Backup
from apis.decoding import decode, encode
from apis.problem import InvalidField, Problem
from apis.restores import Restore
from apis.shared import Model
from apis.times import stamp
from cli.failures import Failure
from cli.progress import Row
from cli.tidb.session import Session
from cli.tidb.waiting import Sight, wait_until_done
from controllers.backup.chains import bases, bounds, moment
from controllers.job_owners import status
from kube.client import Client
from kube.objects import Json, condition_of
from kube.resources import BACKUP_SCHEDULES, BACKUPS, Resource

_T = TypeVar("_T", bound=Model)


@dataclass(frozen=True, slots=True)
class Archives:
    """The Backups and BackupSchedules of a namespace by name, with their defaults.

    `unreadable` has the reasons why others cannot be decoded, by kind and name.
    """

    backups: Mapping[str, Backup]
    schedules: Mapping[str, BackupSchedule]
    unreadable: Mapping[str, str] = field(default_factory=dict)

    def logs(self) -> Iterator[Backup]:
        """The log backups."""
        return (backup for backup in self.backups.values() if backup.spec.backup_mode == "log")

    def bases(self, log: Backup) -> Sequence[Backup]:
        """The snapshots on which a log backup builds, the oldest first."""
        return bases(log, self.backups.values())

    def backup(self, name: str) -> Backup:
        """The Backup of a name. Raises Failure."""
        for what, why in self.unreadable.items():
            if what.partition(" ")[2] == name:
                raise Failure(f"{what} cannot be read: {why}")
        if name not in self.backups:
            raise Failure(f"there is no Backup {name}; there is {named(self.backups)}")
        return self.backups[name]


def read_archives(client: Client, namespace: str) -> Archives:
    """The archives of a namespace. Raises ApiError, TransportError."""
    backups, schedules = (client.list_page(resource, namespace).items for resource in (BACKUPS, BACKUP_SCHEDULES))
    return archives_of([backup.decode() for backup in backups], [schedule.decode() for schedule in schedules])


def archives_of(backups: Iterable[Json], schedules: Iterable[Json] = ()) -> Archives:
    """The archives among objects of a namespace."""
    unreadable: dict[str, str] = {}
    return Archives(
        {name: with_backup_defaults(each) for name, each in _decoded(backups, Backup, unreadable)},
        {name: with_schedule_defaults(each) for name, each in _decoded(schedules, BackupSchedule, unreadable)},
        unreadable,
    )


def _decoded(trees: Iterable[Json], model: type[_T], unreadable: dict[str, str]) -> Iterator[tuple[str, _T]]:
    for each in trees:
        name = each["metadata"]["name"]
        try:
            yield name, decode(each, model)
        except InvalidField as error:
            unreadable[f"{model.__name__} {name}"] = str(error)


def named(names: Iterable[str]) -> str:
    """Names for a sentence that follows `there is`."""
    return ", ".join(sorted(names)) or "none"


def is_of(backup: Backup, namespace: str, cluster: str) -> bool:
    """True if BR makes a Backup from a cluster."""
    br = backup.spec.br
    return br is not None and (br.cluster_namespace, br.cluster) == (namespace, cluster)


def span(archives: Archives, log: Backup) -> tuple[int, int] | None:
    """The TSOs from which to which a log backup can restore its cluster; None without a snapshot below it."""
    below = archives.bases(log)
    _, reached = bounds(log)
    return (moment(below[0].status.commit_ts), reached) if below else None


def span_in_words(found: tuple[int, int]) -> str:
    """A span of TSOs for users."""
    first, last = (stamp(tso.time_of(each)) for each in found)
    return f"from {first} to {last}"


def add_waiting(parser: argparse.ArgumentParser) -> None:
    """Add the flags with which a command waits for the object that it creates."""
    parser.add_argument("--dry-run", action="store_true", help="create nothing; -o yaml shows the object")
    parser.add_argument("--wait", action="store_true", help="show progress until it has ended")
    parser.add_argument("--timeout", type=float, metavar="SECONDS", help="with --wait: give up after so long")


def create(
    session: Session, resource: Resource, made: Backup | Restore, problems: Sequence[Problem], given: argparse.Namespace
) -> int:
    """Create a Backup or Restore, or show it with --dry-run; wait for it with --wait.

    Raises Failure if the operator would refuse it or it fails, ApiError, TransportError.
    """
    if problems:
        raise Failure("; ".join(map(str, problems)))
    name, namespace = made.metadata.name, made.metadata.namespace
    meta = {"namespace": namespace, "name": name}
    tree = {"apiVersion": made.api_version, "kind": made.kind, "metadata": meta, "spec": encode(made.spec)}
    short = f"{resource.kind.lower()}/{name}"
    if given.dry_run:
        session.output.show(tree, lambda: [f"{short} would be created; -o yaml shows it"])
        return 0
    session.client.create(resource, tree, namespace)
    session.output.show(tree, lambda: [f"{short} created"])
    if given.wait:
        wait_until_done(session, name, lambda: _sight(session, resource, name, namespace), given.timeout)
    return 0


def _sight(session: Session, resource: Resource, name: str, namespace: str) -> Sight:
    """What a Backup or Restore does. Raises Failure if it has failed."""
    now = session.client.get(resource, name, namespace).decode().get("status") or {}
    conditions, phase = now.get("conditions") or (), str(now.get("phase") or "new")
    end = status.ended(now)
    message = str(condition_of(conditions, end or phase).get("message") or "")
    if end == status.FAILED or phase == status.INVALID:
        raise Failure(f"{resource.kind} {name}: {phase}: {message}")
    waits = condition_of(conditions, status.WAITING)
    if not end and waits.get("status") == "True":
        message = str(waits.get("message"))
    elif not end and (steps := now.get("progresses")):
        message = f"{steps[-1].get('step')} {steps[-1].get('progress'):g} %"
    done = end == status.COMPLETE
    return Sight([Row(resource.kind, int(done), 1, f"{phase}: {message}" if message else phase)], done)

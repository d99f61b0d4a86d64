"""One sync of a BackupSchedule: what it works with."""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from apis.backup_defaulting import with_schedule_defaults
from apis.backup_schedules import BackupSchedule
from apis.decoding import decode
from apis.problem import InvalidField, Problem
from apis.times import parse_time
from controllers.backup_schedule.made import Made, made_of
from controllers.conditions import ConditionValue
from controllers.job_owners.job_owner import JobOwner
from kube.errors import ApiError
from kube.events import NORMAL, WARNING
from kube.objects import Json, Object
from kube.reading import Lister
from kube.resources import BACKUPS, Resource

Answer: TypeAlias = tuple[ConditionValue, float | None]
"""How a part of the schedule stands, and in how many seconds it must be looked at again."""


@dataclass(frozen=True, slots=True)
class Children:
    """The caches of what schedules make: `backups`, `compactions`."""

    backups: Lister
    compactions: Lister


@dataclass(slots=True)
class Scheduling:
    """A schedule, what is wrong with its spec, and what it has made, as cached; `live` looks again."""

    ctx: JobOwner[BackupSchedule]
    children: Children
    problems: Sequence[Problem]
    backups: Sequence[Made] = field(init=False)

    def __post_init__(self) -> None:
        """Look at the cache once."""
        self.backups = self.mine(self.children.backups.list(self.ctx.namespace))

    def mine(self, backups: Iterable[Object]) -> list[Made]:
        """Those that this schedule controls."""
        return [made_of(each) for each in backups if self.ctx.controls(each)]

    def live_backups(self) -> list[Object]:
        """All Backups of the namespace, read live. Raises ApiError, TransportError."""
        return self.ctx.runtime.client.list_page(BACKUPS, self.ctx.namespace).items

    def others(self) -> Iterator[BackupSchedule]:
        """All other schedules that can be read, of all namespaces, as cached."""
        for each in self.ctx.caches.owners.list():
            if each.metadata.uid != self.ctx.owner.metadata.uid:
                with contextlib.suppress(InvalidField):
                    yield with_schedule_defaults(decode(each.decode(), BackupSchedule))

    def blocks(self, *fields: str) -> str:
        """What is wrong with any of these fields, or with what is below them; empty when nothing is."""
        found = [each for each in self.problems if any(_is_below(each.field, field) for field in fields)]
        return "; ".join(map(str, found))

    def time(self, name: str) -> datetime | None:
        """A time of the status."""
        return parse_time(str(self.ctx.status.get(name) or ""))

    def note(self, **fields: object) -> None:
        """Write fields of the status, None removes. Raises as `JobOwner.write`."""
        kept = {key: value for key, value in (self.ctx.status | fields).items() if value is not None}
        self.ctx.write(kept)

    def create(self, resource: Resource, desired: Json) -> Object:
        """Make an object, which is told as its event; a refusal as one of the schedule. Raises ApiError, …"""
        ctx = self.ctx
        record, name = ctx.runtime.recorder.event, desired["metadata"]["name"]
        what = f"create {resource.kind} {ctx.namespace}/{name} for backupSchedule/{ctx.name}"
        try:
            created = ctx.runtime.applier.create(resource, desired)
        except ApiError as error:
            record(ctx.owner, WARNING, "FailedCreate", f"{what} failed error: {error.message}")
            raise
        record(created, NORMAL, "SuccessfulCreate", f"{what} successful")
        return created


def _is_below(field: str, parent: str) -> bool:
    return field == parent or field.startswith((f"{parent}.", f"{parent}["))

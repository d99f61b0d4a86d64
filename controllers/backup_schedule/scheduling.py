"""The context of one sync of a BackupSchedule."""

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
from controllers.backup_schedule.made import Made, facts_of
from controllers.conditions import ConditionValue
from controllers.job_owners.job_owner import JobOwner
from kube.actions import Create, Emit
from kube.errors import ApiError
from kube.events import NORMAL, WARNING
from kube.objects import Json, Object
from kube.reading import Lister
from kube.resources import BACKUPS, Resource

Answer: TypeAlias = tuple[ConditionValue, float | None]
"""The condition of a part of the schedule, and the seconds until its next check, None if there is none."""


@dataclass(frozen=True, slots=True)
class Children:
    """The caches of the Backups and CompactBackups that schedules create."""

    backups: Lister
    compactions: Lister


@dataclass(slots=True)
class Scheduling:
    """A schedule, the problems of its spec, and its cached Backups; `live_backups` reads them live."""

    ctx: JobOwner[BackupSchedule]
    children: Children
    problems: Sequence[Problem]
    backups: Sequence[Made] = field(init=False)

    def __post_init__(self) -> None:
        """Read the cache once."""
        self.backups = self.mine(self.children.backups.list(self.ctx.namespace))

    def mine(self, backups: Iterable[Object]) -> list[Made]:
        """The Backups among `backups` that this schedule controls."""
        return [facts_of(backup) for backup in backups if self.ctx.controls(backup)]

    def live_backups(self) -> list[Object]:
        """All Backups of the namespace, read live. Raises ApiError, TransportError."""
        return self.ctx.runtime.client.list_page(BACKUPS, self.ctx.namespace).items

    def others(self) -> Iterator[BackupSchedule]:
        """All other cached schedules that can be decoded, of all namespaces."""
        for owner in self.ctx.caches.owners.list():
            if owner.metadata.uid != self.ctx.owner.metadata.uid:
                with contextlib.suppress(InvalidField):
                    yield with_schedule_defaults(decode(owner.decode(), BackupSchedule))

    def blocks(self, *fields: str) -> str:
        """The problems of these fields and of fields below them, in one sentence; empty if there are none."""
        problems = [problem for problem in self.problems if any(_is_below(problem.field, field) for field in fields)]
        return "; ".join(map(str, problems))

    def time(self, name: str) -> datetime | None:
        """The time in a field of the status, if it has one."""
        return parse_time(str(self.ctx.status.get(name) or ""))

    async def note(self, **fields: object) -> None:
        """Write fields of the status; None removes a field. Raises like `JobOwner.write`."""
        kept = {key: value for key, value in (self.ctx.status | fields).items() if value is not None}
        await self.ctx.write(kept)

    async def create(self, resource: Resource, desired: Json) -> Object:
        """Create an object and record an event about it, or one about the schedule on a refusal. Raises ApiError, …"""
        ctx = self.ctx
        name = desired["metadata"]["name"]
        what = f"create {resource.kind} {ctx.namespace}/{name} for backupSchedule/{ctx.name}"
        try:
            created = await Create(resource, desired)
        except ApiError as error:
            await Emit(ctx.owner, WARNING, "FailedCreate", f"{what} failed error: {error.message}")
            raise
        await Emit(created, NORMAL, "SuccessfulCreate", f"{what} successful")
        return created


def _is_below(field: str, parent: str) -> bool:
    return field == parent or field.startswith((f"{parent}.", f"{parent}["))

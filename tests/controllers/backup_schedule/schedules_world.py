"""BackupSchedules in the world of Backups: time passes in leaps, and Backups end as the test says."""

from datetime import datetime, timedelta
from typing import Any

from apis import tso
from apis.times import parse_time, stamp
from kube.objects import Json, condition_of
from kube.resources import BACKUP_SCHEDULES, BACKUPS, COMPACT_BACKUPS
from rehearsal.operator import USER
from tests.apis.backups import S3, by_br, tree
from tests.controllers.backup.backups_world import NAMESPACE, BackupsWorld

NIGHTLY = "0 3 * * *"
LOG: Json = {"backupMode": "log", "br": {"cluster": "basic"}, "s3": S3 | {"prefix": "log"}}
HOUR = 3600.0
DAY = 24 * HOUR


class SchedulesWorld(BackupsWorld):
    """The clock starts at 2026-01-01, midnight UTC; there is a resync when time has passed."""

    def schedule(self, name: str = "nightly", labels: Json | None = None, **spec: Any) -> None:
        """A schedule, every night at 3 unless `spec` says otherwise; the controller sees it."""
        given = {"schedule": NIGHTLY, "backupTemplate": by_br(), **spec}
        body = tree("BackupSchedule", given, name=name, namespace=NAMESPACE, labels=labels or {})
        del body["status"]
        self.admin.create(BACKUP_SCHEDULES, body, NAMESPACE)
        self.run()

    def pass_time(self, seconds: float) -> None:
        """Advance the clock at once, and then run the controllers."""
        self.world.advance(seconds)
        self.operator.caches[BACKUP_SCHEDULES].resync()
        self.operator.work()

    def created(self, name: str) -> int:
        """The number of Backups with a name that the operator has created."""
        made = [each.call for each in self.world.server.audit.recent() if each.code == 201]
        bodies = [each.request.body or b"" for each in made if each.resource == str(BACKUPS) and each.user == USER]
        return sum(f'"{name}"'.encode() in each for each in bodies)

    def requests(self) -> int:
        """The number of requests that the operator has sent."""
        return self.world.server.audit.count(user=USER)

    def pass_until(self, time: str) -> None:
        """Let time pass until the given moment."""
        then = parse_time(time)
        assert then
        self.pass_time((then - self.clock.wall()).total_seconds())

    def change(self, name: str = "nightly", **spec: Any) -> None:
        """Change a schedule."""
        self.admin.patch(BACKUP_SCHEDULES, name, NAMESPACE, {"spec": spec})
        self.run()

    def write_schedule(self, name: str = "nightly", **status: Any) -> None:
        """Write to the status of a schedule, None removes; the controller sees it later."""
        self.admin.patch(BACKUP_SCHEDULES, name, NAMESPACE, {"status": status})

    def of(self, name: str = "nightly") -> Json:
        """The status of a schedule."""
        body = self.admin.get(BACKUP_SCHEDULES, name, NAMESPACE).decode()
        found: Json = body.get("status") or {}
        return found

    def says(self, kind: str = "Active", name: str = "nightly") -> tuple[str, str, str]:
        """Status, reason and message of a condition of a schedule."""
        found = condition_of(self.of(name).get("conditions") or (), kind)
        return str(found.get("status") or ""), str(found.get("reason") or ""), str(found.get("message") or "")

    def backups(self) -> list[str]:
        """The names of all Backups."""
        return [each.metadata.name for each in self.admin.list_page(BACKUPS, NAMESPACE).items]

    def compactions(self) -> list[str]:
        """The names of all CompactBackups."""
        return [each.metadata.name for each in self.admin.list_page(COMPACT_BACKUPS, NAMESPACE).items]

    def complete(self, name: str = "", at: datetime | None = None) -> None:
        """Complete a Backup, by default the newest; its data is from now, or from `at`."""
        now = self.clock.wall()
        self.say(
            "Complete",
            name or self.backups()[-1],
            timeCompleted=stamp(now),
            commitTs=str(tso.of_time(at or now)),
            backupPath=f"s3://lab/full/{name}",
        )
        self._end_job(name or self.backups()[-1], "Complete", "CompletionsReached")

    def fail(self, name: str = "") -> None:
        """A Backup fails for good, the newest by default."""
        name = name or self.backups()[-1]
        others = self.status(name).get("conditions") or []
        said = {"type": "Failed", "status": "True", "reason": "X", "message": "no space"}
        self.write(name, phase="Failed", conditions=[*others, said])
        self._end_job(name, "Failed", "BackoffLimitExceeded")

    def _end_job(self, name: str, kind: str, reason: str) -> None:
        if f"backup-{name}" in self.jobs():
            self.end(f"backup-{name}", kind, reason)

    def nights(self, count: int) -> None:
        """So many nights, each with a backup that ends well in an hour."""
        for _ in range(count):
            day = self.clock.wall().replace(hour=3, minute=0, second=0)
            self.pass_until(stamp(day if day > self.clock.wall() else day + timedelta(days=1)))
            self.pass_time(HOUR)
            self.complete()

    def log_saved_until(self, time: datetime, start: datetime | None = None) -> None:
        """Have the log backup report its checkpoint."""
        body: Json = {"phase": "Running", "logCheckpointTs": str(tso.of_time(time))}
        if start:
            body["commitTs"] = str(tso.of_time(start))
        self.write("log-nightly", **body)

"""A log backup in the world of Backups; the test plays the pods of its Jobs, and BR in the cluster."""

from typing import Any

from kube.objects import Json, condition_of
from kube.resources import BACKUPS
from sandbox.dataplane.log_backup import LogTask
from tests.apis.backups import S3
from tests.controllers.backup.backups_world import NAMESPACE, BackupsWorld
from tests.controllers.backup.write_faults import Kind

TSO = 448_000_000_000_000_000
AT = "2026-01-01T00:00:00Z"
PATH = "s3://lab/log"


class LogBackupsWorld(BackupsWorld):
    """A world with the log backup `demo`, which `begin` starts."""

    def __init__(self, *, faults: tuple[int, Kind] | None = None, **spec: Any) -> None:
        """`faults`: the number of the operator's write that fails, and how it fails."""
        super().__init__()
        if faults:
            self.faults.strike(*faults)
        self.add(backupMode="log", s3=S3 | {"prefix": "log"}, **spec)

    @property
    def task(self) -> LogTask:
        """The task of the log backup in its cluster."""
        return self.pd.task()

    def begin(self) -> None:
        """The pod of `log-start` does its work."""
        self.do("log-start", "Prepare", "Running", backupPath=PATH)
        self.task.begin(TSO)
        self.do("log-start", "Complete", timeStarted=AT, timeCompleted=AT, commitTs=str(TSO))
        self.finish("log-start")

    def carry_out(self, command: str, **fields: Any) -> None:
        """The pod of another sub-command does its work."""
        self.do(command, "Prepare", "Running")
        work = {"log-pause": self.task.pause, "log-resume": self.task.resume, "log-stop": self.task.stop}
        work.get(command, lambda: None)()
        self.do(command, "Complete", timeStarted=AT, timeCompleted=AT, **fields)
        self.finish(command)

    def finish(self, command: str) -> None:
        """The Job of a sub-command is complete."""
        self.end(f"backup-demo-{command}", "Complete", "CompletionsReached")

    def change(self, **spec: Any) -> None:
        """The user edits the spec."""
        self.admin.patch(BACKUPS, "demo", NAMESPACE, {"spec": spec})
        self.run()

    def entry(self, command: str) -> Json:
        """The entry of a sub-command in the status; empty if there is none."""
        found: Json = (self.status().get("logSubCommandStatuses") or {}).get(command) or {}
        return found

    def said(self, command: str, kind: str) -> tuple[str, str]:
        """Reason and message of a condition of a sub-command."""
        found: Json = condition_of(self.entry(command).get("conditions") or (), kind)
        return str(found.get("reason") or ""), str(found.get("message") or "")

    def arguments(self, command: str) -> list[str]:
        """The arguments that the Job of a sub-command passes to the program."""
        found: list[str] = self.job(f"backup-demo-{command}")["spec"]["template"]["spec"]["containers"][0]["args"]
        return found

"""What a job reaches outside, each thing as an argument: tests and the sandbox give their own."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from backup_manager.child_process import Launcher
from backup_manager.database import Database, Login
from backup_manager.redaction import Secrets
from backup_manager.storage.location import Location
from backup_manager.storage.objects import Storage
from kube.client import Client
from ports.clock import Clock
from ports.stopping import Stop

Open = Callable[[Location, Mapping[str, str], bool], Storage]
"""A client of object storage, for the credentials of an environment; with or without deletion in bulk."""

VOLUME: Final = Path("/backup")
"""Where the Job mounts the volume of exports and imports."""

Connect = Callable[[Login], Database]


@dataclass(frozen=True, slots=True)
class Outside:
    """The API server, time, other programs, object storage, TiDB, the environment, the volume of exports and imports.

    `stop` is set by a signal.
    """

    client: Client
    clock: Clock
    launcher: Launcher
    open_storage: Open
    connect: Connect
    environ: Mapping[str, str]
    stop: Stop
    volume: Path = VOLUME

    @property
    def secrets(self) -> Secrets:
        """What of the environment must not be seen."""
        return Secrets(self.environ)

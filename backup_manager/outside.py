"""A job's access to the outside, each part as an argument: tests and the sandbox pass their own."""

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
"""Opens a client of object storage with the credentials of an environment, with or without bulk deletion."""

VOLUME: Final = Path("/backup")
"""The directory where the Job mounts the volume of exports and imports."""

Connect = Callable[[Login], Database]


@dataclass(frozen=True, slots=True)
class Outside:
    """The API server, time, other programs, object storage, TiDB, the environment, the volume of exports and imports.

    A signal sets `stop`.
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
        """The secrets in the environment."""
        return Secrets(self.environ)

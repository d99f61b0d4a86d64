"""One run of BR: how it finds its cluster, what it prints, how it ends.

Failed    the run is over, with an exit code
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from sandbox.dataplane.br.request import Request, moment
from sandbox.dataplane.commands import Surroundings
from sandbox.dataplane.pd.cluster import PdCluster
from sandbox.dataplane.processes import TlsSettings

_PATIENCE = 60.0
"""Seconds for which BR waits for PD, or for the leader of a region."""
_PAUSE = 1.0


class Files(Protocol):
    """The storage of a backup, below its prefix. All methods raise OSError."""

    def names(self) -> Sequence[str]:
        """The names of all files."""

    def read(self, name: str) -> bytes:
        """The content of a file."""

    def write(self, name: str, content: bytes) -> None:
        """Write a file, replacing an existing one."""

    def delete(self, names: Sequence[str]) -> None:
        """Remove files."""


Say = Callable[[str], None]

Open = Callable[[Request], Files]
"""Opens the storage of `--storage` and its options. Raises OSError."""


class Failed(Exception):
    """Raised if a run cannot continue; the message is BR's."""


@dataclass(slots=True)
class Run:
    """A run in progress."""

    request: Request
    files: Files
    surroundings: Surroundings
    say: Say
    open_files: Open
    _cluster_id: int = 0

    def cluster(self) -> PdCluster:
        """The cluster, once PD answers; always the same object. Raises Failed."""
        address, tls = self.request.option("pd"), self._tls()
        deadline = self.surroundings.clock.now() + _PATIENCE
        while (found := self.surroundings.pd(address, tls)) is None:
            self.pause(_PAUSE)
            if self.surroundings.clock.now() >= deadline:
                raise Failed(f"[PD:client:ErrClientGetLeader]get leader from {address} error")
        if self._cluster_id not in (0, found.id):
            raise Failed(f"cluster id mismatch, want {self._cluster_id}, got {found.id}")
        self._cluster_id = found.id
        return found

    def _tls(self) -> TlsSettings | None:
        """The certificates in the options; None for a cluster without TLS."""
        return self.surroundings.launch.client_tls(*(self.request.option(name) for name in ("ca", "cert", "key")))

    def leader(self, region: int) -> int:
        """The leader of a region, once it has one. Raises Failed."""
        deadline = self.surroundings.clock.now() + _PATIENCE
        while True:
            stores = self.cluster().stores
            if stores.is_led(region):
                return stores.regions[region].leader or 0
            if self.surroundings.clock.now() >= deadline:
                raise Failed(f"[BR:KV:ErrKVRegionNoLeader]region {region} has no leader")
            self.pause(_PAUSE)

    def moment(self, option: str) -> int:
        """The TSO in an option, 0 if it is missing. Raises Failed."""
        try:
            return moment(self.request.option(option))
        except ValueError as error:
            raise Failed(f"failed to parse argument {option}: {error}") from error

    def pause(self, seconds: float) -> None:
        """Let time pass. Raises Failed after SIGTERM."""
        if self.surroundings.stop.wait(self.surroundings.clock, seconds):
            raise Failed("context canceled")

    def work_on_a_region(self) -> None:
        """Spend the time that a region takes. Raises Failed after SIGTERM."""
        self.pause(self.surroundings.deps.timings.br_region)

    def note(self, level: str, message: str, *fields: str) -> None:
        """Print a line in TiDB's unified log format."""
        wall = self.surroundings.clock.wall()
        stamp = f"{wall:%Y/%m/%d %H:%M:%S}.{wall.microsecond // 1000:03} +00:00"
        self.say(f"[{stamp}] [{level}] [{message}]{''.join(f' [{field}]' for field in fields)}")

    def progress(self, done: int, of: int) -> None:
        """Print the progress."""
        percent = f"progress={100 * done / of:.2f}%"
        self.note("INFO", "progress", f'step="{self.request.title}"', percent, f'count="{done} / {of}"')

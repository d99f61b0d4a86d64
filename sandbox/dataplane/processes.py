"""What a container's main process is to the rest of the world."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from ports.transport import Request, Response
from sandbox.dataplane.tls import Certificate, ServerSide

_CONTENT = "content-type"


class DiskTrouble(Enum):
    """What goes wrong with objects on a disk: FAIL, DENY every call, FULL every write; SLOW; TEAR leaves half of it."""

    FAIL = "fail"
    DENY = "deny"
    FULL = "full"
    SLOW = "slow"
    TEAR = "tear"


@dataclass(slots=True)
class Disk:
    """A volume, or a directory of one. Its identity is the claim's UID: a new claim is an empty disk.

    `data` is what a server keeps there, `files` are texts that scripts can read, by their path in it, `objects` what
    commands put there, by their path as well; `trouble` is a fault of these.
    """

    uid: str
    data: object | None = None
    files: dict[str, str] = field(default_factory=dict)
    directories: dict[str, "Disk"] = field(default_factory=dict)
    objects: dict[str, bytes] = field(default_factory=dict)
    trouble: DiskTrouble | None = None

    def directory(self, path: str) -> "Disk":
        """A directory on it, made when it is new; the disk itself for an empty path."""
        return self.directories.setdefault(path, Disk(f"{self.uid}/{path}")) if path else self

    def texts(self) -> dict[str, str]:
        """All files, by their path from here."""
        below = {f"{name}/{path}": text for name, each in self.directories.items() for path, text in each.files.items()}
        return self.files | below


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """How a program speaks TLS: the text of its CA, the files of certificate and key, and on which ports (None: all).

    `demands`, `names`: see `ServerSide`.
    """

    ca: str
    cert_file: str
    key_file: str
    ports: frozenset[int] | None = None
    demands: bool = True
    names: tuple[str, ...] = ()

    def speaks(self, port: int) -> bool:
        """Whether a port does."""
        return self.ports is None or port in self.ports


@dataclass(frozen=True, slots=True)
class Launch:
    """What the kubelet knows when it starts a container. `files` are texts by path, `disks` volumes by mount path."""

    namespace: str
    pod: str
    pod_uid: str
    image: str
    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    disks: Mapping[str, Disk] = field(default_factory=dict)
    ports: frozenset[int] = frozenset()
    labels: Mapping[str, str] = field(default_factory=dict)
    service_account: str = "default"
    address: str = ""
    """The pod's address."""
    is_task: bool = False
    """Whether it is to end: the pod's containers are not started again when they do."""
    slowness: float = 0.0
    """Seconds that it needs to start on top of what it always needs."""
    renewed: dict[str, str] = field(default_factory=dict)
    """Texts that have changed under the running container: those of Secrets, by path."""
    tls: TlsSettings | None = None
    """How its program speaks TLS, once that is known."""
    domain: str = ""
    """That of the Kubernetes in which it runs."""

    def file(self, path: str) -> str | None:
        """The text of a file, on a volume or among those that are mounted; None when it is not there."""
        if path in self.files:
            return self.files[path]
        found = self.on_disk(path)
        return found[0].texts().get(found[1]) if found is not None else None

    def current(self, path: str) -> str:
        """The text of a file as who opens it now finds it; empty when it is not there."""
        found = self.renewed.get(path)
        return found if found is not None else self.file(path) or ""

    @property
    def certificate(self) -> Certificate | None:
        """With what its program speaks TLS; None when it speaks none.

        Certificate and key are read for each new connection, the CA once, at the start: as PD, TiKV and TiDB do.
        """
        if self.tls is None:
            return None
        return Certificate(self.tls.ca, self.current(self.tls.cert_file), self.current(self.tls.key_file))

    def serves_tls(self, port: int) -> ServerSide | None:
        """How a port of it speaks TLS, None when it does not."""
        if self.tls is None or self.certificate is None or not self.tls.speaks(port):
            return None
        return ServerSide(self.certificate, self.tls.demands, self.tls.names)

    def paths(self) -> list[str]:
        """The paths of all files."""
        return [*self.files, *(f"{mount}/{path}" for mount, disk in self.disks.items() for path in disk.texts())]

    def client_tls(self, ca: str, cert: str, key: str) -> TlsSettings | None:
        """How its program speaks TLS with others, by the paths of files; not at all without a CA."""
        return TlsSettings(self.file(ca) or "", cert, key) if ca else None

    def disk(self, path: str) -> Disk:
        """Where a server keeps its data; what is on no volume is gone when the container ends."""
        found = self.on_disk(path)
        return found[0].directory(found[1]) if found is not None else Disk("")

    def on_disk(self, path: str) -> tuple[Disk, str] | None:
        """The volume that a path leads to and the path on it, None when it leads to none."""
        mounts = [mount for mount in self.disks if path == mount or path.startswith(f"{mount.rstrip('/')}/")]
        if not mounts:
            return None
        mount = max(mounts, key=len)
        return self.disks[mount], path[len(mount) :].strip("/")

    @property
    def version(self) -> str:
        """The image's tag without a leading v, such as `8.5.0`."""
        tag = self.image.rsplit("/", 1)[-1].partition(":")[2].partition("@")[0]
        return tag.removeprefix("v") or "0.0.0"

    @property
    def cluster(self) -> str:
        """`namespace/instance` of the cluster the pod belongs to."""
        return f"{self.namespace}/{self.labels.get('app.kubernetes.io/instance', self.pod)}"


@dataclass(frozen=True, slots=True)
class Exit:
    """How a process ended."""

    code: int
    message: str = ""
    reason: str = ""
    """What the kubelet calls it, where the code does not tell."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer that takes `delay` seconds. One that is `provisional` may turn out better before they are over."""

    response: Response
    delay: float = 0.0
    provisional: bool = False


class Process(Protocol):
    """One running program. The data plane calls it under its lock, programs excepted."""

    @property
    def exit(self) -> Exit | None:
        """How it ended, or None while it runs."""

    def step(self) -> float | None:
        """Do what is due; return the clock time of the next due work, or None."""

    woken: bool
    """Whether it may have something to do since its last step, although it was to rest."""

    def rests_until(self) -> float:
        """Before which clock time another step does nothing and says the same, while nobody wakes it."""

    def question(self) -> Request | None:
        """What it wants to ask the network now, or None."""

    def answered(self, response: Response | None) -> None:
        """The answer to the question; None when there was none."""

    def listens(self, port: int) -> bool:
        """Whether a connection to the port succeeds."""

    def handle(self, port: int, request: Request) -> Answer:
        """Answer a request to a port it listens on."""

    def stop(self) -> None:
        """SIGTERM: end in good order, soon."""

    def kill(self, code: int) -> None:
        """End now, without a word to anybody."""


class Waiting(Process, Protocol):
    """A process that runs another one in the foreground."""

    def ended(self, code: int) -> None:
        """The other one has ended."""


def text(status: int, body: str) -> Response:
    """A plain-text answer."""
    return Response(status, {_CONTENT: "text/plain; charset=utf-8"}, body.encode())


def not_found() -> Response:
    """What Go's router answers for a route it does not know."""
    return text(404, "404 page not found\n")

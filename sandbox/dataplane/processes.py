"""The interface of a container's main process."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from ports.transport import Request, Response
from sandbox.dataplane.tls import Certificate, ServerSide

_CONTENT = "content-type"


class DiskTrouble(Enum):
    """Faults of objects on a disk: FAIL and DENY affect every call, FULL every write; SLOW; TEAR keeps half
    of a write.
    """

    FAIL = "fail"
    DENY = "deny"
    FULL = "full"
    SLOW = "slow"
    TEAR = "tear"


@dataclass(slots=True)
class Disk:
    """A volume, or a directory on it. Its identity is the claim's UID: a new claim is an empty disk.

    `data` is a server's data, `files` are texts that scripts can read by path, `objects` are files of commands by path;
    `trouble` is a fault of the objects.
    """

    uid: str
    data: object | None = None
    files: dict[str, str] = field(default_factory=dict)
    directories: dict[str, "Disk"] = field(default_factory=dict)
    objects: dict[str, bytes] = field(default_factory=dict)
    trouble: DiskTrouble | None = None
    memory: int | None = None
    """The bytes of memory that it is, as an emptyDir with `medium: Memory`; real processes find such a tmpfs."""

    def directory(self, path: str) -> "Disk":
        """A directory on it, created if necessary; the disk itself for an empty path."""
        return self.directories.setdefault(path, Disk(f"{self.uid}/{path}")) if path else self

    def texts(self) -> dict[str, str]:
        """All files, by relative path."""
        below = {f"{name}/{path}": text for name, each in self.directories.items() for path, text in each.files.items()}
        return self.files | below


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """A program's TLS: the text of its CA, the files of certificate and key, and its ports (None: all).

    For `demands` and `names` see `ServerSide`.
    """

    ca: str
    cert_file: str
    key_file: str
    ports: frozenset[int] | None = None
    demands: bool = True
    names: tuple[str, ...] = ()

    def speaks(self, port: int) -> bool:
        """True if a port speaks TLS."""
        return self.ports is None or port in self.ports


@dataclass(frozen=True, slots=True)
class Launch:
    """The kubelet's data for starting a container. `files` are texts by path, `disks` volumes by mount path."""

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
    """True if the pod's containers are not restarted when they end."""
    slowness: float = 0.0
    """Additional seconds that it needs to start."""
    renewed: dict[str, str] = field(default_factory=dict)
    """Texts of Secrets that have changed while the container runs, by path."""
    tls: TlsSettings | None = None
    """Its program's TLS, once known."""
    domain: str = ""
    """The domain of its Kubernetes."""

    def file(self, path: str) -> str | None:
        """The text of a file on a volume or among the mounted files; None if it does not exist."""
        if path in self.files:
            return self.files[path]
        found = self.on_disk(path)
        return found[0].texts().get(found[1]) if found is not None else None

    def current(self, path: str) -> str:
        """The current text of a file; empty if it does not exist."""
        found = self.renewed.get(path)
        return found if found is not None else self.file(path) or ""

    @property
    def certificate(self) -> Certificate | None:
        """Its program's certificate; None without TLS.

        Certificate and key are read for each new connection, the CA only at the start, as in PD, TiKV and TiDB.
        """
        if self.tls is None:
            return None
        return Certificate(self.tls.ca, self.current(self.tls.cert_file), self.current(self.tls.key_file))

    def serves_tls(self, port: int) -> ServerSide | None:
        """The TLS side of one of its ports; None without TLS."""
        certificate = self.certificate
        if self.tls is None or certificate is None or not self.tls.speaks(port):
            return None
        return ServerSide(certificate, self.tls.demands, self.tls.names)

    def paths(self) -> list[str]:
        """The paths of all files."""
        return [*self.files, *(f"{mount}/{path}" for mount, disk in self.disks.items() for path in disk.texts())]

    def client_tls(self, ca: str, cert: str, key: str) -> TlsSettings | None:
        """Its program's client side of TLS, by the paths of files; None without a CA."""
        return TlsSettings(self.file(ca) or "", cert, key) if ca else None

    def disk(self, path: str) -> Disk:
        """The disk of a server's data; data outside volumes is lost when the container ends."""
        found = self.on_disk(path)
        return found[0].directory(found[1]) if found is not None else Disk("")

    def on_disk(self, path: str) -> tuple[Disk, str] | None:
        """The volume of a path, and the path on it; None outside volumes."""
        mounts = [mount for mount in self.disks if path == mount or path.startswith(f"{mount.rstrip('/')}/")]
        if not mounts:
            return None
        mount = max(mounts, key=len)
        return self.disks[mount], path[len(mount) :].strip("/")

    @property
    def version(self) -> str:
        """The image's tag without a leading v, e.g. `8.5.0`."""
        tag = self.image.rsplit("/", 1)[-1].partition(":")[2].partition("@")[0]
        return tag.removeprefix("v") or "0.0.0"

    @property
    def cluster(self) -> str:
        """`namespace/instance` of the pod's cluster."""
        return f"{self.namespace}/{self.labels.get('app.kubernetes.io/instance', self.pod)}"


@dataclass(frozen=True, slots=True)
class Exit:
    """The end of a process."""

    code: int
    message: str = ""
    reason: str = ""
    """The kubelet's reason, if the code does not determine it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer that takes `delay` seconds. A `provisional` one may improve during the delay."""

    response: Response
    delay: float = 0.0
    provisional: bool = False


class Process(Protocol):
    """A running program. The data plane calls it under its lock, except programs."""

    @property
    def exit(self) -> Exit | None:
        """Its end, or None while it runs."""

    def step(self) -> float | None:
        """Do all due work; return the clock time of the next due work, or None."""

    woken: bool
    """True if it may have work since its last step although it was to rest."""

    def rests_until(self) -> float:
        """The clock time before which a step has no effect, unless it is woken."""

    def question(self) -> Request | None:
        """Its current question to the network, or None."""

    def answered(self, response: Response | None) -> None:
        """Take the answer to the question; None means that there was none."""

    def listens(self, port: int) -> bool:
        """True if a connection to the port succeeds."""

    def handle(self, port: int, request: Request) -> Answer:
        """Answer a request to a port it listens on."""

    def stop(self) -> None:
        """SIGTERM: end in good order, soon."""

    def kill(self, code: int) -> None:
        """End immediately, without cleaning up."""


class Waiting(Process, Protocol):
    """A process that runs another in the foreground."""

    def ended(self, code: int) -> None:
        """Take the exit code of the other process."""


def text(status: int, body: str) -> Response:
    """A plain-text answer."""
    return Response(status, {_CONTENT: "text/plain; charset=utf-8"}, body.encode())


def not_found() -> Response:
    """The answer of Go's router for an unknown route."""
    return text(404, "404 page not found\n")

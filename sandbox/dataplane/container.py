"""A script's container: files, volumes, DNS, and the programs of the image."""

import posixpath
from collections.abc import Callable, Iterator

from ports.randomness import Randomness
from sandbox.dataplane.network import Network, Origin
from sandbox.dataplane.processes import Launch

_DIRECTORIES = ("/", "/bin", "/dev", "/etc", "/usr", "/var", "/var/lib")
_LOG = "/proc/1/fd/1"
_NO_TEXT = ("/dev/null", "/dev/stdin", "/dev/urandom")


class Container:
    """The surroundings of one container. Files outside volumes vanish with it."""

    def __init__(
        self,
        launch: Launch,
        network: Network,
        randomness: Randomness,
        *,
        has_program: Callable[[str], bool],
        help_of: Callable[[str], str],
        uptime: Callable[[], float],
        says: Callable[[str], None],
    ) -> None:
        """`has_program` and `help_of` describe the programs of the image, by name or path.

        `uptime` is the age of its machine, in seconds of scripts; `says` prints into the log of the first process.
        """
        self._launch = launch
        self._network = network
        self._randomness = randomness
        self._has_program = has_program
        self._help_of = help_of
        self._uptime = uptime
        self._says = says
        self._written: dict[str, str] = {}

    @property
    def hostname(self) -> str:
        """The container's host name."""
        return self._launch.env.get("HOSTNAME", self._launch.pod)

    @property
    def address(self) -> str:
        """The pod's address."""
        return self._launch.address

    def resolve(self, name: str) -> list[str]:
        """The addresses that DNS gives for a name."""
        return self._network.addresses(name, Origin.of(self._launch))

    def connects(self, host: str, port: int) -> bool:
        """True if a connection to a port succeeds."""
        return self._network.is_open(host, port, Origin.of(self._launch))

    def read(self, path: str) -> str | None:
        """The text of a file, or None."""
        path = posixpath.normpath(path)
        if path in _NO_TEXT:
            return ""
        if path == "/proc/uptime":
            return f"{self._uptime():.2f} 0.00\n"
        found = self._written.get(path)
        return found if found is not None else self._launch.file(path)

    def write(self, path: str, text: str) -> None:
        """Create a file or replace its text."""
        path = posixpath.normpath(path)
        found = self._launch.on_disk(path)
        if path == _LOG:
            self._says(text)
        elif found is None:
            self._written[path] = text
        else:
            disk, rest = found
            disk.files[rest] = text

    def remove(self, path: str) -> None:
        """Delete a file that exists."""
        path = posixpath.normpath(path)
        found = self._launch.on_disk(path)
        if found is None:
            self._written.pop(path, None)
        else:
            disk, rest = found
            disk.files.pop(rest, None)

    def is_directory(self, path: str) -> bool:
        """True if a directory exists."""
        path = posixpath.normpath(path)
        return path in _DIRECTORIES or any(each == path or each.startswith(f"{path}/") for each in self._paths(path))

    def _paths(self, path: str) -> Iterator[str]:
        """The directories and files below the path."""
        yield from self._launch.disks
        yield from (each for each in (*self._written, *self._launch.paths()) if each != path)

    def has_program(self, name: str) -> bool:
        """True if the image has a program that is not built into the shell."""
        return self._has_program(name)

    def help_of(self, name: str) -> str:
        """A program's output for `--help`; empty if it does not know the flag."""
        return self._help_of(name)

    def random(self, below: int) -> int:
        """A random number from 0 to `below` - 1."""
        return self._randomness.integer(0, below - 1)

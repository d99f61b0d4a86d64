"""The effects of a script on the world, and its surroundings."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Protocol, TypeVar

from ports.transport import Request, Response
from sandbox.dataplane.tls import Certificate


@dataclass(frozen=True, slots=True)
class Sleep:
    """Wait for seconds of script time; infinity means forever. Yields no result."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Ask:
    """Send a request, over TLS with a certificate. Yields the answer, or None."""

    request: Request
    certificate: Certificate | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """Run a program of the image, in place of the shell if it `replaces` it. Yields its exit code."""

    arguments: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    replaces: bool


Effect = Sleep | Ask | Run
Reply = Response | int | None

T = TypeVar("T")
Steps = Generator[Effect, Reply, T]
"""A computation that stops where it needs the world."""


class ShellError(Exception):
    """Raised for an error that ends a script: an unset name, or an unsupported construct."""


class Surroundings(Protocol):
    """The container of a script."""

    @property
    def hostname(self) -> str:
        """The container's host name."""

    @property
    def address(self) -> str:
        """The pod's address, or empty if unknown."""

    def resolve(self, name: str) -> list[str]:
        """The addresses that DNS gives for a name."""

    def connects(self, host: str, port: int) -> bool:
        """True if a connection to a port succeeds."""

    def read(self, path: str) -> str | None:
        """The text of a file, or None."""

    def write(self, path: str, text: str) -> None:
        """Create a file or replace its text."""

    def remove(self, path: str) -> None:
        """Delete a file that exists."""

    def is_directory(self, path: str) -> bool:
        """True if a directory exists."""

    def has_program(self, name: str) -> bool:
        """True if the image has a program that is not built into the shell."""

    def help_of(self, name: str) -> str:
        """A program's output for `--help`; empty if it does not know the flag."""

    def random(self, below: int) -> int:
        """A random number from 0 to `below` - 1."""

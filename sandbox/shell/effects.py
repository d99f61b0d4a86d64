"""What a script asks of the world while it runs, and what it finds there."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Protocol, TypeVar

from ports.transport import Request, Response
from sandbox.dataplane.tls import Certificate


@dataclass(frozen=True, slots=True)
class Sleep:
    """Wait so many seconds of the script; infinity is for ever. Nothing comes back."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Ask:
    """Send a request, over TLS with a certificate. The answer comes back, None when there was none."""

    request: Request
    certificate: Certificate | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """Run a program of the image, in the place of the shell when it `replaces` that. Its exit code comes back."""

    arguments: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    replaces: bool


Effect = Sleep | Ask | Run
Reply = Response | int | None

T = TypeVar("T")
Steps = Generator[Effect, Reply, T]
"""A computation that stops where only the world can go on."""


class ShellError(Exception):
    """Raised for what ends a script: a name that is not set, or something that the sandbox does not know."""


class Surroundings(Protocol):
    """The container a script runs in."""

    @property
    def hostname(self) -> str:
        """The container's host name."""

    @property
    def address(self) -> str:
        """The pod's address, empty when nobody knows it."""

    def resolve(self, name: str) -> list[str]:
        """The addresses that DNS gives for a name."""

    def connects(self, host: str, port: int) -> bool:
        """Whether a connection to a port succeeds."""

    def read(self, path: str) -> str | None:
        """The text of a file, or None."""

    def write(self, path: str, text: str) -> None:
        """Make a file, or replace its text."""

    def is_directory(self, path: str) -> bool:
        """Whether a directory is there."""

    def has_program(self, name: str) -> bool:
        """Whether the image has a program that the shell itself has not."""

    def help_of(self, name: str) -> str:
        """What a program prints for `--help`; empty for one that does not know the flag."""

    def random(self, below: int) -> int:
        """A random number from 0 to `below` - 1."""

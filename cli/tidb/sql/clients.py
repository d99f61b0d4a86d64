"""SQL clients that a user has installed, and their options: `mysql` of MySQL or MariaDB, `mariadb`, `mycli`."""

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from cli.failures import Failure
from cli.tidb.sql.tunnel import HOST
from dataplane.certificates import CA, CERTIFICATE, KEY

CLIENTS = ("mysql", "mariadb", "mycli")
"""The programs, in the order of preference."""

_MYCLI = "mycli"
_PATIENCE = 10.0
"""Seconds for a client to print its version."""
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\b": r"\b"})
"""The escapes of option files of MySQL and MariaDB."""


@dataclass(frozen=True, slots=True)
class Login:
    """What a session needs. `password` is None if the client asks for it, and not shown.

    `tls` is None for a server that offers none; else the data of a Secret, empty without authority and certificate.
    """

    user: str
    password: str | None = field(default=None, repr=False)
    tls: Mapping[str, bytes] | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Client:
    """An installed client. `is_mariadb`: it has MariaDB's options, also under the name `mysql`."""

    name: str
    program: str
    is_mariadb: bool

    def secrets(self, login: Login) -> str:
        """The content of a file with the password: an option file, or the password itself. Raises Failure."""
        if self.name != _MYCLI:
            known = "" if login.password is None else f'password="{login.password.translate(_ESCAPES)}"\n'
            return f"[client]\n{known}"
        if "\n" in (login.password or ""):
            raise Failure("mycli reads only one line of a password; use --client mysql")
        return login.password or ""

    def command(self, login: Login, secrets: Path, port: int, place: Path) -> list[str]:
        """The command line, which has no secrets. Writes the files of TLS into `place`."""
        where = [f"--host={HOST}", f"--port={port}", f"--user={login.user}", *self._tls(login, place)]
        if self.name == _MYCLI:
            # it asks for a password when the server wants one
            return [self.program, *([f"--password-file={secrets}"] if login.password else []), *where]
        asks = ["--password"] if login.password is None else []
        return [self.program, f"--defaults-file={secrets}", *where, *asks]

    def _tls(self, login: Login, place: Path) -> Iterator[str]:
        """Options for TLS.

        The client verifies the authority and not the name, since certificates of TiDB need not name this machine. No
        other server can answer at the port: kubectl listens there.
        """
        if self.is_mariadb:
            # since 11.4 it would otherwise refuse a server without TLS, and one that has another name
            yield "--disable-ssl-verify-server-cert"
        if login.tls is None:
            return
        if self.is_mariadb:
            yield "--ssl"
        elif self.name != _MYCLI:
            yield f"--ssl-mode={'VERIFY_CA' if CA in login.tls else 'REQUIRED'}"
        for option, key in (("ssl-ca", CA), ("ssl-cert", CERTIFICATE), ("ssl-key", KEY)):
            if key in login.tls:
                yield f"--{option}={write_private(place / key, login.tls[key])}"


def write_private(path: Path, content: bytes) -> Path:
    """Write a new file that only this user can read; returns its path."""
    path.touch(0o600, exist_ok=False)
    path.write_bytes(content)
    return path


def find_client(name: str, way_out: str) -> Client:
    """The client of that name, or the first installed one. Raises Failure, with a way out without clients."""
    found = ((each, shutil.which(each)) for each in ((name,) if name else CLIENTS))
    for each, program in found:
        if program is not None:
            return Client(each, program, each != _MYCLI and "MariaDB" in _version(program))
    missing = f"{name} is not" if name else f"none of {', '.join(CLIENTS)} is"
    raise Failure(
        f"{missing} on PATH; install one, such as Debian's package mariadb-client, or connect another client after "
        f"`{way_out}`"
    )


def _version(program: str) -> str:
    with suppress(OSError, subprocess.TimeoutExpired):
        asked = [program, "--no-defaults", "--version"]
        return subprocess.run(  # noqa: S603 - no shell
            asked, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_PATIENCE, check=False
        ).stdout
    return ""

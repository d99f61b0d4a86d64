"""A real server of MySQL's protocol for tests: Debian's MariaDB."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pymysql
import pytest
import trustme

from tests.controlplane.processes import free_port

HOST = "127.0.0.1"
SYSTEM_TABLES = [
    Path("/usr/share/mysql") / f"mysql_{name}.sql"
    for name in ("system_tables", "performance_tables", "system_tables_data")
]
_FIRST = b"CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket = NULL;\nSET @skip_auth_anonymous = 1;\n"


@dataclass(frozen=True, slots=True)
class MariaDb:
    """A running server: its port, its socket, and a directory with client certificates, as in a pod."""

    port: int
    socket: Path
    tls: Path


def program() -> str:
    """The server's path; skips where there is none, and fails where everything is required."""
    found = shutil.which("mariadbd", path=f"{os.environ['PATH']}:/usr/sbin")
    if found is None:
        assert not os.environ.get("REQUIRE_EVERYTHING"), "mariadbd is missing"
        pytest.skip("mariadbd is missing: install mariadb-server-core")
    return found


def tables_with(further: bytes = b"") -> bytes:
    """The SQL of a server's first start, with only root, who has no password, and `further` SQL."""
    return _FIRST + b"".join(path.read_bytes() for path in SYSTEM_TABLES) + further


@contextmanager
def mariadb(directory: Path, *, bootstrap: bytes = b"") -> Iterator[MariaDb]:
    """A server with only root, who has no password; `bootstrap` is additional SQL."""
    data, temporary, tls = directory / "data", directory / "tmp", certificates(directory / "tls")
    data.mkdir()
    # a starting server deletes all temporary tables in its directory, also tables of a running server
    temporary.mkdir()
    serve = [program(), "--no-defaults", f"--datadir={data}", f"--tmpdir={temporary}", "--user=root"]
    tables = tables_with(bootstrap)
    subprocess.run([*serve, "--bootstrap"], input=tables, check=True, capture_output=True, timeout=60)
    made = MariaDb(free_port(), directory / "socket", tls)
    serve += [f"--port={made.port}", f"--bind-address={HOST}", f"--socket={made.socket}"]
    serve += [f"--ssl-cert={tls / 'tls.crt'}", f"--ssl-key={tls / 'tls.key'}", f"--ssl-ca={tls / 'ca.crt'}"]
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(serve, stdout=log, stderr=log)
        try:
            _wait(made.port, directory / "log")
            yield made
        finally:
            process.kill()
            process.wait()


def certificates(directory: Path) -> Path:
    """A directory with an authority's certificate, and one of `localhost`."""
    directory.mkdir()
    authority = trustme.CA()
    authority.cert_pem.write_to_path(directory / "ca.crt")
    issued = authority.issue_cert("localhost")
    for index, blob in enumerate(issued.cert_chain_pems):
        blob.write_to_path(directory / "tls.crt", append=index > 0)
    issued.private_key_pem.write_to_path(directory / "tls.key")
    return directory


def _wait(port: int, log: Path) -> None:
    deadline = time.monotonic() + 30  # noqa: TID251  (a real process)
    while True:
        try:
            pymysql.connect(host=HOST, port=port, user="root").close()
            return
        except pymysql.MySQLError:
            assert time.monotonic() < deadline, log.read_text(encoding="utf-8")  # noqa: TID251
            time.sleep(0.1)  # noqa: TID251

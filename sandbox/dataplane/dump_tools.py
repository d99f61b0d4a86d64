"""Dumpling and TiDB Lightning: tables as SQL in the files of a directory, and back (backup.md 7.9).

metadata   <schema>-schema-create.sql   <schema>.<table>-schema.sql   <schema>.<table>.sql
"""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ports.sql import SqlLogin, SqlRefused
from ports.transport import TransportError
from sandbox.dataplane.br.request import Request, parse
from sandbox.dataplane.commands import Surroundings
from sandbox.dataplane.processes import TlsSettings
from sandbox.dataplane.tables import Rows
from sandbox.dataplane.tls import Certificate

Say = Callable[[str], None]

_METADATA = """Started dump at: {0}
SHOW MASTER STATUS:
\tLog: tidb-binlog
\tPos: {1}
\tGTID:

Finished dump at: {0}
"""
_SCHEMA, _TABLE, _ROWS = "-schema-create.sql", "-schema.sql", ".sql"


class _Failed(Exception):
    """Raised if a tool cannot continue; the message is the tool's."""


@dataclass(frozen=True, slots=True)
class _Tidb:
    """A tool's connection to TiDB."""

    surroundings: Surroundings
    login: SqlLogin
    password: str
    tls: Certificate | None

    def ask(self, *statements: str) -> list[Rows]:
        """The results of statements that run at once. Raises _Failed."""
        sql = self.surroundings.sql
        try:
            return self.surroundings.reach(lambda: sql.ask(self.login, statements, self.password, self.tls))
        except (SqlRefused, TransportError) as error:
            raise _Failed(str(error)) from error

    def rest(self) -> None:
        """Spend the time that a table takes. Raises _Failed after SIGTERM."""
        if self.surroundings.stop.wait(self.surroundings.clock, self.surroundings.deps.timings.br_region):
            raise _Failed("context canceled")


def run_dumpling(arguments: Sequence[str], environ: Mapping[str, str], surroundings: Surroundings, say: Say) -> int:
    """Dump to a directory; return the exit code."""
    request = parse(arguments)
    if request.option("help"):
        say("-p, --password string  User password (or the environment variable MYSQL_PWD)")
        return 0
    login = SqlLogin(request.option("host"), int(request.option("port")), request.option("user"))
    password = request.option("password") or environ.get("MYSQL_PWD", "")
    tidb = _Tidb(surroundings, login, password, _tls(request, surroundings))
    return _ended(lambda: _dump(tidb, request, Path(request.option("output"))), say)


def run_lightning(arguments: Sequence[str], surroundings: Surroundings, say: Say) -> int:
    """Load a directory; return the exit code."""
    request = parse(arguments)
    login = SqlLogin(request.option("tidb-host"), int(request.option("tidb-port")), request.option("tidb-user"))
    config = tomllib.loads(Path(request.option("config")).read_text(encoding="utf-8"))
    tidb = _Tidb(surroundings, login, str(config["tidb"]["password"]), _tls(request, surroundings))
    return _ended(lambda: _load(tidb, request, Path(request.option("d"))), say)


def _ended(work: Callable[[], None], say: Say) -> int:
    try:
        work()
    except (_Failed, OSError) as error:
        say(f"[ERROR] {error}")
        return 1
    return 0


def _tls(request: Request, surroundings: Surroundings) -> Certificate | None:
    launch, cert = surroundings.launch, request.option("cert")
    if not cert:
        return None
    ca = launch.file(request.option("ca")) or ""
    certificate = replace(launch, tls=TlsSettings(ca, cert, request.option("key"))).certificate
    return replace(certificate, verifies=bool(ca)) if certificate else None


def _dump(tidb: _Tidb, request: Request, output: Path) -> None:
    """Dump everything at one timestamp; `metadata` comes last. Raises _Failed, OSError."""
    ((_, *schemas),) = tidb.ask("SHOW DATABASES")
    meant = [each for (each,) in schemas if request.means(each)]
    listed = tidb.ask(*(f"SHOW TABLES FROM {schema}" for schema in meant))
    tables = [(schema, name) for schema, (_, *names) in zip(meant, listed, strict=True) for (name,) in names]
    tables = [table for table in tables if request.means(*table)]
    selects = [f"SELECT * FROM {schema}.{name}" for schema, name in tables]  # noqa: S608  (a double)
    (_, (position,)), *contents = tidb.ask("SHOW MASTER STATUS", *selects)
    for schema in meant:
        (output / f"{schema}{_SCHEMA}").write_text(f"CREATE DATABASE IF NOT EXISTS `{schema}`", encoding="utf-8")
    for (schema, name), (columns, *rows) in zip(tables, contents, strict=True):
        tidb.rest()
        told = ", ".join(f"`{column}` TEXT" for column in columns)
        made = f"CREATE TABLE IF NOT EXISTS `{schema}`.`{name}` ({told})"
        (output / f"{schema}.{name}{_TABLE}").write_text(made, encoding="utf-8")
        if rows:
            values = ",".join(f"({','.join(map(_quoted, row))})" for row in rows)
            (output / f"{schema}.{name}{_ROWS}").write_text(f"`{schema}`.`{name}` VALUES {values}", encoding="utf-8")
    now = f"{tidb.surroundings.clock.wall():%Y-%m-%d %H:%M:%S}"
    (output / "metadata").write_text(_METADATA.format(now, position), encoding="utf-8")


def _load(tidb: _Tidb, request: Request, source: Path) -> None:
    """Load schemas, tables and rows; existing rows are replaced. Raises _Failed, OSError."""
    files = sorted(source.glob("*.sql"), key=lambda each: each.name)
    for path in (file for file in files if file.name.endswith(_SCHEMA)):
        tidb.ask(path.read_text(encoding="utf-8"))
    tables = [file for file in files if file.name.endswith(_TABLE)]
    for path in tables:
        schema, _, name = path.name.removesuffix(_TABLE).partition(".")
        if request.filters and not request.means(schema, name):
            continue
        tidb.rest()
        rows = source / f"{schema}.{name}{_ROWS}"
        insert = [f"REPLACE INTO {rows.read_text(encoding='utf-8')}"] if rows.exists() else []
        tidb.ask(path.read_text(encoding="utf-8"), *insert)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"

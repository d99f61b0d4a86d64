"""TiDB's GC life time, raised while a tool reads old versions of rows (backup.md 7.3).

Before the value is raised, an annotation records it: a killed pod leaves the annotation, and the next pod restores that
value instead of the raised one.
"""

import contextlib
from collections.abc import Iterator

import structlog

from apis.backup_shared import BRConfig, TiDBAccessConfig
from backup_manager.database import CLIENT_TLS, Database, DatabaseError, Login
from backup_manager.flags import Tls
from backup_manager.outcomes import JobFailed, Stopped
from backup_manager.outside import Outside
from backup_manager.records import Record
from ports.duration import seconds

_log = structlog.get_logger(__name__)

VARIABLE = "tikv_gc_life_time"
DEFAULT = "72h"
BEFORE = "tidb.pingcap.com/tikv-gc-life-time-before"
"""The annotation with the value to restore."""

_PATIENCE = 1800.0
_PAUSE = 5.0


def login_of(access: TiDBAccessConfig, outside: Outside, tls: Tls, br: BRConfig | None = None) -> Login:
    """The connection to TiDB; the password is in the environment. `br` names the cluster, if known."""
    secret = access.tls_client_secret_name or (f"{br.cluster}-tidb-client-secret" if br else "")
    return Login(
        access.host,
        access.port or 4000,
        access.user or "root",
        outside.environ.get("BACKUP_MANAGER_PASSWORD", ""),
        CLIENT_TLS if tls.client else None,
        verifies=not tls.skip_client_ca,
        secret=secret if tls.client else "",
    )


@contextlib.contextmanager
def raised(record: Record, wanted: str | None, login: Login | None, outside: Outside) -> Iterator[None]:
    """Within the block, keep old versions for at least `wanted`, by default 72h; do nothing without a login.

    Raises JobFailed, Stopped; RecordGone, ApiError, TransportError.
    """
    if login is None:
        yield
        return
    database = _connected(outside, login)
    before = _raise(record, database, wanted)
    try:
        yield
    finally:
        if before is not None:
            _put_back(record, database, before)


def restore_leftover(record: Record, login: Login | None, outside: Outside) -> None:
    """Restore a value that a killed pod left raised, if nothing more is to be read.

    Raises JobFailed, Stopped; RecordGone, ApiError, TransportError.
    """
    left = _unrestored(record)
    if login is not None and left is not None:
        _put_back(record, _connected(outside, login), left)


def _unrestored(record: Record) -> str | None:
    """The value that an earlier pod recorded and has not restored."""
    left: str | None = (record.read()["metadata"].get("annotations") or {}).get(BEFORE)
    return left


def _connected(outside: Outside, login: Login) -> Database:
    """A connection to a database that answers within half an hour."""
    database = outside.connect(login)
    deadline = outside.clock.now() + _PATIENCE
    while True:
        try:
            database.ping()
        except DatabaseError as error:
            if outside.clock.now() + _PAUSE > deadline:
                raise JobFailed("ConnectTidbFailed", f"TiDB does not let us in: {error}") from error
            _log.info("waiting for TiDB", cause=str(error))
        else:
            return database
        if outside.stop.wait(outside.clock, _PAUSE):
            raise Stopped


def _raise(record: Record, database: Database, wanted: str | None) -> str | None:
    """Raise the variable if it is lower; return the value to restore."""
    left = _unrestored(record)
    try:
        there = database.variable(VARIABLE)
    except DatabaseError as error:
        raise JobFailed("GetTikvGCLifeTimeFailed", str(error)) from error
    old = _parsed(there, "ParseOldTikvGCLifeTimeFailed", f"TiDB's {VARIABLE}")
    reason = "ParseConfiguredTikvGCLifeTimeFailed" if wanted else "ParseDefaultTikvGCLifeTimeFailed"
    target = _parsed(wanted or DEFAULT, reason, "spec.tikvGCLifeTime")
    if old >= target:
        return left
    if left is None:
        record.annotate(BEFORE, there)
    try:
        database.set_variable(VARIABLE, wanted or DEFAULT)
    except DatabaseError as error:
        raise JobFailed("SetTikvGCLifeTimeFailed", str(error)) from error
    _log.info("raised", variable=VARIABLE, value=wanted or DEFAULT, before=there)
    return left or there


def _put_back(record: Record, database: Database, before: str) -> None:
    try:
        database.set_variable(VARIABLE, before)
    except DatabaseError as error:
        why = f"{error}; TiDB keeps old versions for too long: set {VARIABLE} to {before} in mysql.tidb"
        raise JobFailed("ResetTikvGCLifeTimeFailed", why) from error
    record.annotate(BEFORE, None)
    _log.info("put back", variable=VARIABLE, value=before)


def _parsed(text: str, reason: str, what: str) -> float:
    try:
        return seconds(text)
    except ValueError as error:
        raise JobFailed(reason, f"{what}: {error}") from error

"""Gives users their passwords and runs SQL, in the pod of a TidbInitializer (other-resources.md 2.5).

Made by tidb-operator from the TidbInitializer. Runs on Python 3.7 with MySQLdb or PyMySQL. Every step may run again. A
failure is reported in /dev/termination-log: the step, the number of the statement, the answer of the server; never a
password.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

driver: Any = import_module("MySQLdb" if find_spec("MySQLdb") else "pymysql")

TRIES = 10
PAUSE = 1.0
"""Seconds between two tries to connect."""
ACCESS_DENIED = 1045
SECRETS = re.compile(r"password|identified|secret|token|access_key|credential", re.IGNORECASE)
"""Words of a statement whose text, which a server may quote, must not be reported."""


class Settings(NamedTuple):
    """The server, and the files and variables of the pod; an empty path: none."""

    host: str
    port: int
    permit_host: str = "%"
    tls: str = ""
    verifies: bool = True
    passwords: str = ""
    sql: str = ""
    log: str = "/dev/termination-log"


class StepFailed(Exception):
    """Raised when a step fails; the message is fit to be shown."""


def passwords(directory: str) -> dict[str, str]:
    """The password of each user: the first line of the file with the user's name."""
    found = {}
    for user in sorted(os.listdir(directory)) if directory else []:
        if not user.startswith("."):
            with open(os.path.join(directory, user), encoding="utf-8") as file:
                found[user] = file.readline().rstrip("\r\n")
    return found


def statements(text: str) -> Iterator[str]:
    """The statements of SQL, which end at `;` outside of quotes and comments; comments alone are none."""
    quoted = r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"|`(?:[^`]|``)*`"
    comment = r"--(?=\s|$)[^\n]*|#[^\n]*|/\*(?!T?!|\+).*?\*/"
    piece = re.compile(f"(?P<quoted>{quoted})|(?P<comment>{comment})|(?P<end>;)|(?P<other>.)", re.DOTALL)
    statement = ""
    for match in piece.finditer(text):
        if match.lastgroup == "end":
            if statement.strip():
                yield statement.strip()
            statement = ""
        else:
            statement += " " if match.lastgroup == "comment" else match.group()
    if statement.strip():
        yield statement.strip()


def redacted(error: Any, secrets: list[str]) -> str:
    """The server's answer, without passwords."""
    text = ": ".join(str(each) for each in error.args) or type(error).__name__
    for secret in filter(None, secrets):
        text = text.replace(secret, "***")
    return text


def as_sent(password: str) -> Any:
    """A password as the driver sends it in UTF-8: PyMySQL would send a text as Latin-1, MySQLdb takes texts alone."""
    return password.encode() if driver.__name__ == "pymysql" else password


def connect(settings: Settings, root: str, pause: Callable[[float], None]) -> Any:
    """Log in as root, without a password or with its own, as one from an earlier run has it. Raises StepFailed."""
    tls = {"ca": f"{settings.tls}/ca.crt", "cert": f"{settings.tls}/tls.crt", "key": f"{settings.tls}/tls.key"}
    if not settings.verifies:
        del tls["ca"]
    options: dict[str, Any] = {"ssl": tls} if settings.tls else {}
    error: Exception | None = None
    for attempt in range(TRIES):
        for password in dict.fromkeys(["", root]):
            try:
                return driver.connect(
                    host=settings.host,
                    port=settings.port,
                    user="root",
                    password=as_sent(password),
                    charset="utf8mb4",
                    connect_timeout=5,
                    **options,
                )
            except driver.Error as refused:
                error = refused
                if not refused.args or refused.args[0] != ACCESS_DENIED:
                    break
        if attempt < TRIES - 1:
            pause(PAUSE)
    raise StepFailed(f"connect to {settings.host}:{settings.port} as root: {redacted(error, [root])}")


def carry_out(settings: Settings, pause: Callable[[float], None]) -> None:
    """All steps, one after another. Raises StepFailed."""
    users = passwords(settings.passwords)
    connection = connect(settings, users.get("root", ""), pause)
    cursor = connection.cursor()
    rows: list[Any] = []

    def run(step: str, statement: str, *arguments: str) -> None:
        try:
            cursor.execute(statement, arguments or None)
            rows[:] = cursor.fetchall() or ()
            while cursor.nextset():
                pass
            connection.commit()
        except driver.Error as error:
            code = error.args[0] if error.args else type(error).__name__
            hidden = not arguments and SECRETS.search(statement)
            answer = f"error {code}; its text is not shown, as the statement seems to hold a secret"
            raise StepFailed(f"{step}: {answer if hidden else redacted(error, list(users.values()))}") from None

    for user, password in sorted(users.items(), key=lambda each: each[0] != "root"):
        if user == "root":
            run("password of user root", "SELECT CURRENT_USER()")
            name, _, host = rows[0][0].rpartition("@")
            run("password of user root", "ALTER USER %s@%s IDENTIFIED BY %s", name, host, password)
        else:
            who = (user, settings.permit_host)
            run(f"user {user}", "CREATE USER IF NOT EXISTS %s@%s IDENTIFIED BY %s", *who, password)
            run(f"password of user {user}", "ALTER USER %s@%s IDENTIFIED BY %s", *who, password)
    if settings.sql:
        with open(settings.sql, encoding="utf-8") as file:
            for number, statement in enumerate(statements(file.read()), 1):
                run(f"init SQL, statement {number}", statement)
    run("host of user root", "UPDATE mysql.user SET Host = %s WHERE User = 'root'", settings.permit_host)
    run("flush privileges", "FLUSH PRIVILEGES")
    connection.close()


def main(settings: Settings) -> int:
    """Exit code."""
    try:
        carry_out(settings, time.sleep)  # noqa: TID251  (a program of its own)
    except (StepFailed, OSError) as error:
        sys.stderr.write(f"{error}\n")
        with open(settings.log, "w", encoding="utf-8") as log:
            log.write(str(error)[:4000])
        return 1
    return 0

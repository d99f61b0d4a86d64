"""The script in the pod of a TidbInitializer: passwords, SQL, root's host (other-resources.md 2.5).

Its last lines contain its input, `Settings(host='…', …)`. Any other script just runs and ends.
"""

import ast
from functools import partial

from ports.sql import SqlLogin, SqlRefused
from ports.transport import TransportError
from sandbox.dataplane.commands import Surroundings
from sandbox.dataplane.mysql_client import statements
from sandbox.dataplane.processes import Exit

SCRIPT = "start_script.py"

_PATH = f"/usr/local/bin/{SCRIPT}"
_TRIES = 10
_PAUSE = 1.0
_DENIED = 1045


class _Failed(Exception):
    """Raised with the failed step and the server's answer."""


def initialize(surroundings: Surroundings) -> int | Exit:
    """Run all steps; the termination message names the one that failed."""
    settings = _settings(surroundings.launch.file(_PATH) or "")
    if settings is None:
        surroundings.wait(surroundings.deps.timings.task)
        return 0
    try:
        _carry_out(surroundings, settings)
    except _Failed as failed:
        surroundings.say(str(failed))
        return Exit(1, str(failed))
    return 0


def _carry_out(surroundings: Surroundings, settings: dict[str, object]) -> None:
    """Log in as root for each step, with the current password. Raises _Failed."""
    login = SqlLogin(str(settings["host"]), int(str(settings["port"])), "root")
    users, host = _passwords(surroundings, str(settings["passwords"])), str(settings["permit_host"])
    password = _connect(surroundings, login, users.get("root", ""))

    def run(step: str, *statements: str) -> None:
        try:
            surroundings.reach(lambda: surroundings.sql.ask(login, statements, password))
        except SqlRefused as refused:
            raise _Failed(f"{step}: {refused.code}: {refused.message}") from refused
        except TransportError as error:
            raise _Failed(f"{step}: 2013: {error}") from error

    if "root" in users:
        run("password of user root", f"ALTER USER 'root'@'%' IDENTIFIED BY {_quoted(users['root'])}")
        password = users["root"]
    for user in sorted(users.keys() - {"root"}):
        who, given = f"{_quoted(user)}@{_quoted(host)}", _quoted(users[user])
        run(f"user {user}", f"CREATE USER IF NOT EXISTS {who} IDENTIFIED BY {given}")
        run(f"password of user {user}", f"ALTER USER {who} IDENTIFIED BY {given}")
    sql = surroundings.launch.file(str(settings["sql"])) if settings["sql"] else ""
    used: tuple[str, ...] = ()
    for number, statement in enumerate(statements(sql or ""), 1):
        run(f"init SQL, statement {number}", *used, statement)
        if statement.upper().startswith("USE "):
            used = (statement,)
    run("host of user root", f"UPDATE mysql.user SET Host = {_quoted(host)} WHERE User = 'root'")  # noqa: S608  (quoted)
    run("flush privileges", "FLUSH PRIVILEGES")


def _connect(surroundings: Surroundings, login: SqlLogin, own: str) -> str:
    """The password of root that works. Raises _Failed."""
    said = ""
    for _ in range(_TRIES):
        for password in dict.fromkeys(("", own)):
            try:
                surroundings.reach(partial(surroundings.sql.ask, login, [], password))
            except SqlRefused as refused:
                said = f"{refused.code}: {refused.message}"
                if refused.code != _DENIED:
                    break
            except TransportError as error:
                said = f"2003: {error}"
                break
            else:
                return password
        surroundings.wait(_PAUSE)
    raise _Failed(f"connect to {login.host}:{login.port} as root: {said}")


def _passwords(surroundings: Surroundings, directory: str) -> dict[str, str]:
    launch, found = surroundings.launch, {}
    for path in launch.files if directory else ():
        above, _, user = path.rpartition("/")
        if above == directory and not user.startswith("."):
            found[user] = launch.files[path].partition("\n")[0]
    return found


def _settings(script: str) -> dict[str, object] | None:
    """The input of the script; None for another script."""
    try:
        tree = ast.parse(script)
    except SyntaxError:
        return None
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name))
    for call in calls:
        if isinstance(call.func, ast.Name) and call.func.id == "Settings":
            return {keyword.arg or "": ast.literal_eval(keyword.value) for keyword in call.keywords}
    return None


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"

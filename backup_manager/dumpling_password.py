"""Dumpling's password, passed in its environment, where process lists do not show it (backup.md 7.9).

Dumpling reads `MYSQL_PWD` since pingcap/tidb#70907 and mentions it in its help; an older one accepts a password only as
an argument. v1.6 always passes an argument.
"""

from collections.abc import Mapping, Sequence

from backup_manager.database import Login
from backup_manager.outside import Outside
from backup_manager.tools import ToolFailed, run_tool

VARIABLE = "MYSQL_PWD"
ALLOWED = "DUMPLING_PASSWORD_IN_ARGUMENTS"
"""The variable (spec.env) by which a user allows the argument for an older Dumpling."""


def with_password(command: Sequence[str], login: Login, outside: Outside) -> tuple[Sequence[str], Mapping[str, str]]:
    """The command and environment with which Dumpling can log in. Raises ToolFailed if it cannot; Stopped."""
    environ = outside.environ
    if not login.password:
        return command, environ
    if _reads_variable(command[0], outside):
        return command, {**environ, VARIABLE: login.password}
    if environ.get(ALLOWED) == "true":
        return [*command, f"--password={login.password}"], environ
    raise ToolFailed(
        "this Dumpling takes a password as an argument alone, where every process of the pod can read it: use one that "
        f"reads {VARIABLE} (spec.toolImage), a user who logs in by a certificate (spec.from.tlsClientSecretName), or "
        f"allow it by the variable {ALLOWED}=true in spec.env"
    )


def _reads_variable(program: str, outside: Outside) -> bool:
    help_: list[str] = []
    run_tool("Dumpling", [program, "--help"], outside, help_.append)
    return any(VARIABLE in line for line in help_)

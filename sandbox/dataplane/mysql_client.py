"""MySQL's command-line client: `mysql -h HOST -P PORT -u USER -e STATEMENTS`."""

import re

from ports.sql import SqlLogin, SqlRefused
from ports.transport import TransportError
from sandbox.dataplane.commands import Surroundings

MYSQL = "mysql"

_PIECE = re.compile(
    r"(?P<quoted>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`)"
    r"|(?P<comment>--(?=\s|$)[^\n]*|\#[^\n]*|/\*(?!!).*?\*/)|(?P<end>;)|(?P<other>.)",
    re.DOTALL,
)
_OPTIONS = {"-h": "host", "-P": "port", "-u": "user", "-e": "execute"}
_USUAL = {"host": "127.0.0.1", "port": "4000", "user": "root", "execute": ""}


def mysql(surroundings: Surroundings) -> int:
    """Run the statements and print their results, with tabs between columns."""
    options = _options(surroundings.launch.command[1:])
    login = SqlLogin(options["host"], int(options["port"]), options["user"])
    asked = statements(options["execute"])
    try:
        answers = surroundings.reach(lambda: surroundings.sql.ask(login, asked))
    except SqlRefused as refused:
        surroundings.say(f"ERROR {refused.code} (HY000): {refused.message}")
        return 1
    except TransportError as error:
        surroundings.say(f"ERROR 2003 (HY000): Can't connect to MySQL server on '{login.host}:{login.port}' ({error})")
        return 1
    for rows in answers:
        for row in rows:
            surroundings.say("\t".join(row))
    return 0


def statements(text: str) -> list[str]:
    """Split SQL into statements without comments. A semicolon in quotes or a comment ends none."""
    found = [""]
    for piece in _PIECE.finditer(text):
        if piece.lastgroup == "end":
            found.append("")
        else:
            found[-1] += " " if piece.lastgroup == "comment" else piece.group()
    return [each.strip() for each in found if each.strip()]


def _options(arguments: tuple[str, ...]) -> dict[str, str]:
    """Parse `-h host`, `-hhost`, `--host=host`."""
    found, words = dict(_USUAL), iter(arguments)
    for word in words:
        if word.startswith("--"):
            name, _, value = word[2:].partition("=")
            found[name] = value
        elif name := _OPTIONS.get(word[:2], ""):
            found[name] = word[2:] or next(words, "")
    return found

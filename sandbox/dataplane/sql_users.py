"""SQL users: statements that create them and set passwords. Hosts are ignored."""

import re

from ports.sql import SqlRefused

_TEXT = r"'((?:[^'\\]|''|\\.)*)'"
_CHANGED = re.compile(rf"(CREATE|ALTER) USER (IF NOT EXISTS )?{_TEXT}@{_TEXT} IDENTIFIED BY {_TEXT}", re.IGNORECASE)
_WITHOUT_EFFECT = re.compile(r"(?:UPDATE mysql\.user SET Host|GRANT |SET GLOBAL ).*", re.IGNORECASE | re.DOTALL)
_ESCAPED = re.compile(r"''|\\(.)")
_CANNOT = 1396


def is_of_users(statement: str) -> bool:
    """True if a statement is about users, or changes settings that the sandbox ignores."""
    return bool(_CHANGED.fullmatch(statement) or _WITHOUT_EFFECT.fullmatch(statement))


def change_users(users: dict[str, str], statement: str) -> None:
    """Execute it. Raises SqlRefused."""
    found = _CHANGED.fullmatch(statement)
    if found is None:
        return
    verb, tolerant, user, password = found[1].upper(), found[2], _plain(found[3]), _plain(found[5])
    if (user in users) is (verb == "CREATE"):
        if tolerant:
            return
        raise SqlRefused(_CANNOT, f"Operation {verb} USER failed for '{user}'@'{_plain(found[4])}'")
    users[user] = password


def _plain(text: str) -> str:
    return _ESCAPED.sub(lambda each: each[1] or "'", text)

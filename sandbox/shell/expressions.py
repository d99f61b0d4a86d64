"""Basic and extended regular expressions, and the commands of `sed` that use them."""

import re
from collections.abc import Callable

from sandbox.shell.effects import ShellError

_CLASSES = {"[:space:]": r"\s", "[:digit:]": r"\d", "[:alpha:]": "A-Za-z", "[:alnum:]": "A-Za-z0-9"}


def to_python(pattern: str, *, extended: bool) -> str:
    """The pattern in Python's syntax. In a basic one, `+?|(){}` are literal unless escaped."""
    for name, meant in _CLASSES.items():
        pattern = pattern.replace(name, meant)
    if extended:
        return pattern
    found, position = [], 0
    while position < len(pattern):
        character = pattern[position]
        if character == "[":
            end = pattern.find("]", position + (3 if pattern[position + 1 : position + 2] == "^" else 2))
            found.append(pattern[position : end + 1])
            position = end + 1
            continue
        if character == "\\" and position + 1 < len(pattern):
            position += 1
            following = pattern[position]
            found.append(following if following in "+?|(){}" else f"\\{following}")
        else:
            found.append(f"\\{character}" if character in "+?|(){}" else character)
        position += 1
    return "".join(found)


def sed_commands(script: str, *, extended: bool) -> list[Callable[[str], str]]:
    """The functions of a script of `s` commands. Raises ShellError for any other command."""
    found, rest = [], script.strip()
    while rest:
        command, rest = _substitution(rest, extended)
        found.append(command)
        rest = rest.lstrip("; \n")
    return found


def _substitution(script: str, extended: bool) -> tuple[Callable[[str], str], str]:
    if len(script) < 2 or script[0] != "s":
        raise ShellError(f"sed: the sandbox does not know {script!r}")
    end = script[1]
    pieces, position = ["", ""], 2
    for number in range(2):
        while script[position : position + 1] != end:
            if position >= len(script):
                raise ShellError(f"sed: unterminated 's' command {script!r}")
            taken = script[position : position + (2 if script[position] == "\\" else 1)]
            pieces[number] += end if taken == f"\\{end}" else taken
            position += len(taken)
        position += 1
    flags = re.match(r"[gI]*", script[position:])
    letters = flags[0] if flags is not None else ""
    pattern = re.compile(to_python(pieces[0], extended=extended), re.IGNORECASE if "I" in letters else 0)
    replacement = _replacement(pieces[1])
    count = 0 if "g" in letters else 1
    return lambda line: pattern.sub(replacement, line, count=count), script[position + len(letters) :]


def _replacement(text: str) -> str:
    """A replacement in Python's syntax; `&` is the whole match."""
    return re.sub(r"\\(\d)|\\(.)|&|([^\\&]+)", _translated, text)


def _translated(found: re.Match[str]) -> str:
    if found[1] is not None:
        return f"\\g<{found[1]}>"
    if found[2] is not None:
        return "\n" if found[2] == "n" else found[2].replace("\\", "\\\\")
    return "\\g<0>" if found[3] is None else found[3]

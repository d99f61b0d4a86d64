"""`test`, `[ … ]` and `[[ … ]]`."""

import re
from collections.abc import Callable, Mapping

from sandbox.shell.effects import ShellError, Steps, Surroundings
from sandbox.shell.expansion import Expansion
from sandbox.shell.patterns import matches
from sandbox.shell.tree import Word

_NUMBERS: Mapping[str, Callable[[int, int], bool]] = {
    "-eq": lambda one, other: one == other,
    "-ne": lambda one, other: one != other,
    "-lt": lambda one, other: one < other,
    "-le": lambda one, other: one <= other,
    "-gt": lambda one, other: one > other,
    "-ge": lambda one, other: one >= other,
}
_TEXTS: Mapping[str, Callable[[str, str], bool]] = {
    "=": lambda one, other: one == other,
    "==": lambda one, other: one == other,
    "!=": lambda one, other: one != other,
    "<": lambda one, other: one < other,
    ">": lambda one, other: one > other,
}


def is_file_test(sign: str) -> bool:
    """True for a supported unary test."""
    return sign in ("-z", "-n", "-f", "-e", "-d", "-s", "-r", "-x", "-w", "-L", "-h")


def unary(sign: str, text: str, host: Surroundings) -> bool:
    """Evaluate `-z text`, `-f path` and so on."""
    if sign in ("-z", "-n"):
        return bool(text) is (sign == "-n")
    if sign in ("-L", "-h"):
        return False
    if host.is_directory(text):
        return sign != "-f"
    found = host.read(text)
    return bool(found) if sign == "-s" else found is not None and sign != "-d"


def test(arguments: list[str], host: Surroundings) -> bool:
    """The result of `test`. Raises ShellError for unsupported arguments."""
    match arguments:
        case [] | [_]:
            return bool(arguments and arguments[0])
        case ["!", *rest]:
            return not test(rest, host)
        case [sign, text] if is_file_test(sign):
            return unary(sign, text, host)
        case [first, sign, second] if sign in _TEXTS:
            return _TEXTS[sign](first, second)
        case [first, sign, second] if sign in _NUMBERS:
            return _NUMBERS[sign](number(first), number(second))
    for sign in ("-o", "-a"):
        if sign in arguments:
            place = arguments.index(sign)
            results = test(arguments[:place], host), test(arguments[place + 1 :], host)
            return any(results) if sign == "-o" else all(results)
    raise ShellError(f"test: the sandbox does not understand {' '.join(arguments)!r}")


def number(text: str) -> int:
    """An integer. Raises ShellError."""
    if not re.fullmatch(r"\s*[-+]?\d+\s*", text):
        raise ShellError(f"{text}: integer expression expected")
    return int(text)


class Condition:
    """Evaluates the terms of `[[ … ]]`, left to right."""

    def __init__(self, terms: tuple[Word | str, ...], expansion: Expansion, host: Surroundings) -> None:
        self._terms = list(terms)
        self._expansion = expansion
        self._host = host

    def value(self) -> Steps[bool]:
        """The result. Raises ShellError."""
        found = yield from self._any()
        if self._terms:
            raise ShellError("[[: unexpected term")
        return found

    def _any(self) -> Steps[bool]:
        found = yield from self._all()
        while self._accept("||"):
            other = yield from self._all()
            found = found or other
        return found

    def _all(self) -> Steps[bool]:
        found = yield from self._one()
        while self._accept("&&"):
            other = yield from self._one()
            found = found and other
        return found

    def _one(self) -> Steps[bool]:
        if self._accept("!"):
            return not (yield from self._one())
        if self._accept("("):
            found = yield from self._any()
            if not self._accept(")"):
                raise ShellError("[[: expected ')'")
            return found
        first = yield from self._expansion.text(self._word())
        if is_file_test(first) and self._terms and not isinstance(self._terms[0], str):
            return unary(first, (yield from self._expansion.text(self._word())), self._host)
        if not self._terms or self._terms[0] in ("&&", "||", ")"):
            return bool(first)
        return (yield from self._compared(first))

    def _compared(self, first: str) -> Steps[bool]:
        term = self._terms.pop(0)
        sign = term if isinstance(term, str) else (yield from self._expansion.text(term))
        if sign in ("=", "==", "!="):
            pattern = yield from self._expansion.pattern(self._word())
            return matches(pattern, first) is (sign != "!=")
        if sign == "=~":
            expression = yield from self._expansion.expression(self._word())
            return re.search(expression, first) is not None
        second = yield from self._expansion.text(self._word())
        if sign in _NUMBERS:
            return _NUMBERS[sign](self._expansion.calculated(first), self._expansion.calculated(second))
        if sign in _TEXTS:
            return _TEXTS[sign](first, second)
        raise ShellError(f"[[: the sandbox does not know {sign!r}")

    def _accept(self, operator: str) -> bool:
        if not self._terms or self._terms[0] != operator:
            return False
        self._terms.pop(0)
        return True

    def _word(self) -> Word:
        term = self._terms.pop(0) if self._terms else ""
        if isinstance(term, str):
            raise ShellError(f"[[: expected a word, not {term!r}")
        return term

"""The expressions of `$((…))`: integers, variables, the operators of C that scripts use."""

import operator
import re
from collections.abc import Callable, Mapping

from sandbox.shell.effects import ShellError

_TOKEN = re.compile(r"\s*(\d+|[A-Za-z_]\w*|\$?\w+|\+\+|--|[-+*/%]=|<=|>=|==|!=|&&|\|\||[-+*/%()<>=!?:,])")


def calculate(text: str, variables: Mapping[str, str], assign: Callable[[str, str], None]) -> int:
    """The value of an expression. Raises ShellError."""
    return _Expression(text, variables, assign).value()


def _divided(one: int, other: int) -> int:
    """Divide towards zero, as in C."""
    if other == 0:
        raise ShellError("division by 0")
    found = abs(one) // abs(other)
    return found if (one < 0) == (other < 0) else -found


def _remainder(one: int, other: int) -> int:
    return one - other * _divided(one, other)


_LEVELS: tuple[Mapping[str, Callable[[int, int], int]], ...] = (
    {"||": lambda one, other: int(bool(one) or bool(other))},
    {"&&": lambda one, other: int(bool(one) and bool(other))},
    {"==": operator.eq, "!=": operator.ne},
    {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt},
    {"+": operator.add, "-": operator.sub},
    {"*": operator.mul, "/": _divided, "%": _remainder},
)
"""Binary operators by precedence, lowest first."""


_UNARY: Mapping[str, Callable[[int], int]] = {"-": operator.neg, "+": operator.pos, "!": lambda one: int(not one)}
_STEPS = {"++": 1, "--": -1}


class _Expression:
    def __init__(self, text: str, variables: Mapping[str, str], assign: Callable[[str, str], None]) -> None:
        self._text = text
        self._tokens = _tokens(text)
        self._variables = variables
        self._assign = assign

    def value(self) -> int:
        found = self._assigned() if self._tokens else 0
        if self._tokens:
            raise self._problem()
        return found

    def _assigned(self) -> int:
        if len(self._tokens) > 1 and self._tokens[0].isidentifier():
            name, sign = self._tokens[0], self._tokens[1]
            if sign == "=" or (len(sign) == 2 and sign[1] == "=" and sign[0] in "+-*/%"):
                del self._tokens[:2]
                value = self._assigned()
                return self._set(name, value if sign == "=" else _apply(sign[0], self._named(name), value))
        return self._chosen()

    def _chosen(self) -> int:
        condition = self._binary(0)
        if not self._accept("?"):
            return condition
        first = self._assigned()
        if not self._accept(":"):
            raise self._problem()
        second = self._assigned()
        return first if condition else second

    def _binary(self, level: int) -> int:
        if level == len(_LEVELS):
            return self._unary()
        found = self._binary(level + 1)
        while self._tokens and self._tokens[0] in _LEVELS[level]:
            sign = self._tokens.pop(0)
            found = int(_LEVELS[level][sign](found, self._binary(level + 1)))
        return found

    def _unary(self) -> int:
        if not self._tokens:
            raise self._problem()
        sign = self._tokens[0]
        if sign in _UNARY:
            del self._tokens[0]
            return _UNARY[sign](self._unary())
        if sign in _STEPS:
            del self._tokens[0]
            name = self._tokens.pop(0) if self._tokens else ""
            return self._set(name, self._named(name) + _STEPS[sign])
        if self._accept("("):
            found = self._assigned()
            if not self._accept(")"):
                raise self._problem()
            return found
        return self._primary(self._tokens.pop(0))

    def _primary(self, word: str) -> int:
        if word.isdecimal():
            return int(word)
        if not word.isidentifier():
            raise self._problem()
        found = self._named(word)
        if self._tokens and self._tokens[0] in _STEPS:
            self._set(word, found + _STEPS[self._tokens.pop(0)])
        return found

    def _accept(self, token: str) -> bool:
        if not self._tokens or self._tokens[0] != token:
            return False
        self._tokens.pop(0)
        return True

    def _named(self, name: str) -> int:
        text = self._variables.get(name, "").strip() or "0"
        if not re.fullmatch(r"[-+]?\d+", text):
            raise self._problem()
        return int(text)

    def _set(self, name: str, value: int) -> int:
        self._assign(name, str(value))
        return value

    def _problem(self) -> ShellError:
        return ShellError(f"{self._text.strip()}: syntax error in expression")


def _tokens(text: str) -> list[str]:
    found, position, text = [], 0, text.rstrip()
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None:
            raise ShellError(f"{text.strip()}: syntax error in expression")
        found.append(token[1])
        position = token.end()
    return found


def _apply(sign: str, one: int, other: int) -> int:
    return int(next(level[sign] for level in _LEVELS if sign in level)(one, other))

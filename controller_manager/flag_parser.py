"""A command line in Go's style: single and double dashes are equivalent, and a boolean flag needs no value."""

import argparse
import re
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, ClassVar, NoReturn, Protocol, TypeVar

from controller_manager.addresses import parse_address
from controller_manager.go_values import parse_bool
from ports import duration

_T = TypeVar("_T")


_MOST_WORKERS = 1000
_MOST_SHARDS = 32


class Options(Protocol):
    """A data class with a field for each flag, named like it with underscores."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


class FlagParser:
    """The flags of one program, each with a field of its options; the result omits flags that are not given."""

    def __init__(self, program: str, version: str, options: type[Options]) -> None:
        self._options = options
        self._without_effect: dict[str, tuple[str, str]] = {}
        """By destination: the warning, and the value that needs none."""
        self.described: dict[str, str] = {}
        """The description of each effective flag, by its name without dashes."""
        self._parser = argparse.ArgumentParser(
            prog=program,
            usage=f"{program} [flags]    (-help lists them)",
            argument_default=argparse.SUPPRESS,
            allow_abbrev=False,
            add_help=False,
        )
        self._parser.add_argument("-h", "--help", action="help", help="show this help and exit")
        self._parser.add_argument(
            "-V", "--version", action="version", version=version, help="print the version and exit"
        )

    def flag(self, name: str, parse_value: Callable[[str], object], text: str, *short: str) -> None:
        """A flag with a value; `parse_value` raises ValueError, which describes the format."""
        help_text = self.described[name] = text + self._default(name)
        self._parser.add_argument(*short, f"--{name}", type=_typed(parse_value), metavar="VALUE", help=help_text)

    def switch(self, name: str, text: str) -> None:
        """A boolean flag; as in Go, its name alone means true."""
        help_text = self.described[name] = text + self._default(name)
        self._parser.add_argument(
            f"--{name}", type=_typed(parse_bool), nargs="?", const=True, metavar="BOOL", help=help_text
        )

    def without_effect(self, name: str, why: str, harmless: str = "") -> None:
        """A flag that is accepted for v1.6's sake; a value in `harmless` requests what happens anyway."""
        self._without_effect[f"({name})"] = f"-{name} has no effect: {why}", harmless
        self._parser.add_argument(f"--{name}", nargs="?", dest=f"({name})", help=f"accepted, without effect: {why}")

    def parse(self, argv: Sequence[str]) -> dict[str, Any]:
        """The given values by field; `without_effect` has a sentence about each given flag without an effect.

        Raises SystemExit: code 2 after a message on stderr, 0 after help.
        """
        given = vars(self._parser.parse_args([_with_two_dashes(argument) for argument in argv]))
        values = {name: value for name, value in given.items() if name not in self._without_effect}
        in_vain = [
            warning
            for name, (warning, harmless) in self._without_effect.items()
            if name in given and (given[name] or "true") != harmless
        ]
        return values | ({"without_effect": tuple(in_vain)} if in_vain else {})

    def refuse(self, problem: str) -> NoReturn:
        """End the program with a message on stderr. Raises SystemExit, code 2."""
        self._parser.error(problem)

    def _default(self, flag: str) -> str:
        name = flag.replace("-", "_")
        value = next((option.default for option in fields(self._options) if option.name == name), "")
        if not isinstance(value, (bool, int, float, str)) or value == "":
            return ""
        return f" (default {format_value(name, value)})"


def format_value(name: str, value: object) -> str:
    """The value of an option in the form that its flag accepts."""
    match value:
        case bool():
            return str(value).lower()
        case float():
            return f"{value:g}" if name == "kube_client_qps" else duration.go_text(value)
        case _:
            return str(value)


def parse_workers(text: str) -> int:
    """Parse a number of workers. Raises ValueError."""
    if (number := parse_count(text)) == 0:
        raise ValueError("must be at least 1: without workers nothing is reconciled")
    if number > _MOST_WORKERS:
        raise ValueError(f"must be at most {_MOST_WORKERS}: each of the controllers has as many threads")
    return number


def parse_shards(text: str) -> int:
    """Parse a number of shards. Raises ValueError."""
    if not 1 <= (number := parse_count(text)) <= _MOST_SHARDS:
        raise ValueError(f"must be 1 to {_MOST_SHARDS}: every replica watches over the Lease of each shard")
    return number


def parse_count(text: str) -> int:
    """Parse a whole number. Raises ValueError."""
    if not text.isdecimal():
        raise ValueError(f"{text!r} is not a non-negative integer")
    return int(text)


def parse_rate(text: str) -> float:
    """Parse a rate per second. Raises ValueError."""
    if not re.fullmatch(r"\d+\.?\d*|\.\d+", text):
        raise ValueError(f"{text!r} is not a non-negative number")
    return float(text)


def address(text: str) -> str:
    """Check a listen address and return it unchanged. Raises ValueError."""
    parse_address(text)
    return text


def _with_two_dashes(argument: str) -> str:
    """Turn `-workers=3` into `--workers=3`: with one dash, argparse would guess at abbreviations."""
    return f"-{argument}" if re.match(r"-[A-Za-z][\w-]", argument) else argument


def _typed(parse_value: Callable[[str], _T]) -> Callable[[str], _T]:
    """`parse_value` with its own error message, which argparse would replace."""

    def parse_argument(text: str) -> _T:
        try:
            return parse_value(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return parse_argument

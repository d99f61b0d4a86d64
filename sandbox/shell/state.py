"""The state of a shell while it runs a script, and the streams of a command."""

from dataclasses import dataclass, field

from sandbox.shell.tree import Command


class Input:
    """Text that commands read, by line or as a whole."""

    def __init__(self, text: str = "") -> None:
        self._text = text
        self._position = 0

    def line(self) -> str | None:
        """The next line without its end, or None."""
        if self._position >= len(self._text):
            return None
        line = self._text[self._position :].partition("\n")[0]
        self._position += len(line) + 1
        return line

    def all(self) -> str:
        """The remaining text."""
        rest = self._text[self._position :]
        self._position = len(self._text)
        return rest


@dataclass(frozen=True, slots=True)
class Streams:
    """Where a command reads and writes."""

    input: Input
    output: list[str]
    error: list[str]


@dataclass(slots=True)
class State:
    """Variables (text, or a list of texts), functions, arguments, options, and the status of the last command."""

    variables: dict[str, str | list[str]]
    exported: set[str]
    arguments: list[str] = field(default_factory=list)
    functions: dict[str, Command] = field(default_factory=dict)
    options: set[str] = field(default_factory=set)
    traps: dict[str, str] = field(default_factory=dict)
    locals: list[dict[str, str | list[str] | None]] = field(default_factory=list)
    """The values that local variables of each running function hide."""
    status: int = 0

    def copy(self) -> "State":
        """A copy for a subshell."""
        lists = {name: list(value) if isinstance(value, list) else value for name, value in self.variables.items()}
        return State(
            lists,
            set(self.exported),
            list(self.arguments),
            dict(self.functions),
            set(self.options),
            {},
            [dict(each) for each in self.locals],
            self.status,
        )

    def text(self, name: str) -> str | None:
        """The text of a variable, or the first element of a list; None if it is unset."""
        value = self.variables.get(name)
        if isinstance(value, list):
            return value[0] if value else None
        return value

    def texts(self) -> dict[str, str]:
        """All text variables."""
        return {name: value for name, value in self.variables.items() if isinstance(value, str)}

    def assign(self, name: str, value: str) -> None:
        """Set a variable to a text."""
        self.variables[name] = value

    def environment(self) -> tuple[tuple[str, str], ...]:
        """The environment of a program."""
        return tuple((name, text) for name in sorted(self.exported) if (text := self.text(name)) is not None)


class Exited(Exception):
    """Raised to end the script."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Returned(Exception):
    """Raised to end a function, or a sourced file."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Jumped(Exception):
    """`break` and `continue`, out of a number of loops."""

    def __init__(self, levels: int, *, goes_on: bool) -> None:
        super().__init__(levels)
        self.levels = levels
        self.goes_on = goes_on

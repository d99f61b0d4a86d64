"""What a shell knows while it runs a script, and the streams of a command."""

from dataclasses import dataclass, field

from sandbox.shell.tree import Command


class Input:
    """Text that commands read, one line or all that is left."""

    def __init__(self, text: str = "") -> None:
        self._text = text
        self._position = 0

    def line(self) -> str | None:
        """The next line without its end, None when nothing is left."""
        if self._position >= len(self._text):
            return None
        line = self._text[self._position :].partition("\n")[0]
        self._position += len(line) + 1
        return line

    def all(self) -> str:
        """What is left."""
        rest = self._text[self._position :]
        self._position = len(self._text)
        return rest


@dataclass(frozen=True, slots=True)
class Streams:
    """Where a command reads, and where its texts go."""

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
    """What the local variables of each running function hid."""
    status: int = 0

    def copy(self) -> "State":
        """The state of a shell that is forked now."""
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
        """The text of a variable, the first of a list; None when it is not set."""
        value = self.variables.get(name)
        if isinstance(value, list):
            return value[0] if value else None
        return value

    def texts(self) -> dict[str, str]:
        """All variables that are texts."""
        return {name: value for name, value in self.variables.items() if isinstance(value, str)}

    def assign(self, name: str, value: str) -> None:
        """Set a variable to a text."""
        self.variables[name] = value

    def environment(self) -> tuple[tuple[str, str], ...]:
        """What a program gets."""
        return tuple((name, text) for name in sorted(self.exported) if (text := self.text(name)) is not None)


class Exited(Exception):
    """The script ends."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Returned(Exception):
    """A function ends, or a file that is read into the shell."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Jumped(Exception):
    """`break` and `continue`, out of so many loops."""

    def __init__(self, levels: int, *, goes_on: bool) -> None:
        super().__init__(levels)
        self.levels = levels
        self.goes_on = goes_on

"""From words to texts and fields."""

import re
from collections.abc import Callable, Mapping

from sandbox.shell.arithmetic import calculate
from sandbox.shell.effects import ShellError, Steps, Surroundings
from sandbox.shell.patterns import glob, trimmed
from sandbox.shell.state import State
from sandbox.shell.tree import Arithmetic, Block, Literal, Parameter, Part, Substitution, Word

_BLANKS = " \t\n"
_RANDOM = 32768
_SPECIAL: Mapping[str, Callable[[State], str | None]] = {
    "#": lambda state: str(len(state.arguments)),
    "?": lambda state: str(state.status),
    "-": lambda state: "".join(sorted(option for option in state.options if len(option) == 1)),
    "$": lambda _: "1",
    "!": lambda _: None,
}


class Expansion:
    """Expands words in the state of a shell; `substitute` returns the output of commands."""

    def __init__(self, state: Callable[[], State], host: Surroundings, substitute: Callable[[Block], Steps[str]]):
        self._state = state
        self._host = host
        self._substitute = substitute

    def text(self, word: Word) -> Steps[str]:
        """One text, never split: the value of an assignment, a redirection's target."""
        texts = []
        for part in word:
            value = yield from self._value(part)
            texts.append(value if isinstance(value, str) else " ".join(value))
        return "".join(texts)

    def pattern(self, word: Word) -> Steps[str]:
        """The regular expression of a shell pattern; quoted text is literal."""
        return glob((yield from self._pieces(word)))

    def expression(self, word: Word) -> Steps[str]:
        """A regular expression for `=~`; quoted text is literal."""
        pieces = yield from self._pieces(word)
        return "".join(re.escape(text) if quoted else text for text, quoted in pieces)

    def _pieces(self, word: Word) -> Steps[list[tuple[str, bool]]]:
        pieces = []
        for part in word:
            value = yield from self._value(part)
            pieces.append((value if isinstance(value, str) else " ".join(value), part.quoted))
        return pieces

    def fields(self, words: tuple[Word, ...]) -> Steps[list[str]]:
        """The arguments that words expand to."""
        found: list[str] = []
        for word in words:
            fields = _Fields(self._state().text("IFS"))
            for part in word:
                value = yield from self._value(part)
                if isinstance(value, list) and part.quoted:
                    fields.add_all(value)
                elif part.quoted or isinstance(part, Literal):
                    fields.add(value if isinstance(value, str) else " ".join(value))
                else:
                    fields.split(value if isinstance(value, str) else " ".join(value))
            found.extend(fields.done())
        return found

    def _value(self, part: Part) -> Steps[str | list[str]]:
        match part:
            case Literal():
                return part.text
            case Parameter():
                return (yield from self._parameter(part))
            case Substitution():
                return (yield from self._substitute(part.body))
            case Arithmetic():
                expression = yield from self.text(part.expression)
                return str(self.calculated(expression))

    def calculated(self, expression: str) -> int:
        """The value of an arithmetic expression. Raises ShellError."""
        state = self._state()
        drawn = {"RANDOM": str(self._host.random(_RANDOM))} if "RANDOM" in expression else {}
        return calculate(expression, state.texts() | drawn, state.assign)

    def _parameter(self, part: Parameter) -> Steps[str | list[str]]:
        value = self._named(part)
        if part.operator == "length":
            return str(len(value or ()))
        if part.operator[-1:] in ("-", "=", "?", "+") and part.operator:
            return (yield from self._conditional(part, value))
        if value is None:
            if "u" in self._state().options:
                raise ShellError(f"{part.name}: unbound variable")
            value = ""
        if not part.operator:
            return value
        if isinstance(value, list):
            raise ShellError(f"{part.name}: the sandbox changes texts only, no lists")
        pattern = yield from self.pattern(part.operand)
        if part.operator in ("/", "//"):
            replacement = yield from self.text(part.replacement)
            return re.sub(pattern, lambda _: replacement, value, count=part.operator == "/", flags=re.DOTALL)
        return trimmed(value, pattern, part.operator)

    def _conditional(self, part: Parameter, value: str | list[str] | None) -> Steps[str | list[str]]:
        given = value is not None and (bool(value) or not part.operator.startswith(":"))
        match part.operator[-1]:
            case "+":
                return (yield from self.text(part.operand)) if given else ""
            case "?" if not given:
                message = yield from self.text(part.operand)
                raise ShellError(f"{part.name}: {message or 'parameter null or not set'}")
            case "=" if not given:
                self._state().assign(part.name, (yield from self.text(part.operand)))
                return self._state().text(part.name) or ""
        if given and value is not None:
            return value
        return (yield from self.text(part.operand))

    def _named(self, part: Parameter) -> str | list[str] | None:
        """The value of a parameter, or None if it is unset."""
        state, name = self._state(), part.name
        if part.index:
            return self._element(part)
        if name in ("@", "*"):
            return " ".join(state.arguments) if part.quoted and name == "*" else list(state.arguments)
        if name == "RANDOM":
            return str(self._host.random(_RANDOM))
        if name in _SPECIAL:
            return _SPECIAL[name](state)
        if name.isdecimal():
            return ("sh", *state.arguments)[int(name)] if int(name) <= len(state.arguments) else None
        return state.text(name)

    def _element(self, part: Parameter) -> str | list[str] | None:
        value = self._state().variables.get(part.name)
        values = [value] if isinstance(value, str) else value or []
        if part.index in ("@", "*"):
            return " ".join(values) if part.quoted and part.index == "*" else list(values)
        place = self.calculated(part.index.removeprefix("$"))
        return values[place] if -len(values) <= place < len(values) else None


class _Fields:
    """Builds the fields of one word."""

    def __init__(self, separators: str | None) -> None:
        self._separators = _BLANKS if separators is None else separators
        self._done: list[str] = []
        self._open: list[str] | None = None

    def add(self, text: str) -> None:
        self._open = [*(self._open or ()), text]

    def add_all(self, texts: list[str]) -> None:
        """Add each text as a field; the first and last join the text before and after them."""
        for number, text in enumerate(texts):
            if number:
                self._close()
            self.add(text)

    def split(self, text: str) -> None:
        for number, piece in enumerate(split(text, self._separators)):
            if number:
                self._close()
            if piece:
                self.add(piece)

    def done(self) -> list[str]:
        self._close()
        return self._done

    def _close(self) -> None:
        if self._open is not None:
            self._done.append("".join(self._open))
            self._open = None


def split(text: str, separators: str) -> list[str]:
    """Split a text at separators; a run of blanks counts as one."""
    if not separators:
        return [text]
    blanks = "".join(each for each in separators if each in _BLANKS)
    others = "".join(each for each in separators if each not in _BLANKS)
    kinds = [f"[{re.escape(blanks)}]+"] if blanks else []
    if others:
        around = f"[{re.escape(blanks)}]*" if blanks else ""
        kinds.insert(0, f"{around}[{re.escape(others)}]{around}")
    return re.split("|".join(kinds), text)

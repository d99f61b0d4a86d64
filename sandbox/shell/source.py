"""The text of a script while it is read."""

from __future__ import annotations


class SyntaxProblem(Exception):
    """Raised for invalid shell, or an unsupported construct. The message begins with the line."""


class Source:
    """A text, a position in it, and its line."""

    def __init__(self, text: str, line: int = 1) -> None:
        self.text = text
        self.position = 0
        self._first = line

    @property
    def line(self) -> int:
        """The line of the position, from 1."""
        return self._first + self.text.count("\n", 0, self.position)

    @property
    def rest_is_empty(self) -> bool:
        """True if everything has been read."""
        return self.position >= len(self.text)

    def at(self, text: str) -> bool:
        """True if this text comes next."""
        return self.text.startswith(text, self.position)

    def peek(self) -> str:
        """The next character, empty at the end."""
        return self.text[self.position : self.position + 1]

    def take(self, count: int = 1) -> str:
        """Read `count` characters."""
        taken = self.text[self.position : self.position + count]
        self.position += count
        return taken

    def accept(self, text: str) -> bool:
        """Read a text if it comes next; True if it did."""
        if not self.at(text):
            return False
        self.position += len(text)
        return True

    def expect(self, text: str) -> None:
        """Read a text that must come next. Raises SyntaxProblem."""
        if not self.accept(text):
            raise self.problem(f"expected {text!r}")

    def take_to(self, end: str) -> str:
        """Read up to and including a text. Raises SyntaxProblem if it does not occur."""
        found = self.text.find(end, self.position)
        if found < 0:
            raise self.problem(f"expected {end!r} before the end of the file")
        taken = self.text[self.position : found]
        self.position = found + len(end)
        return taken

    def problem(self, what: str) -> SyntaxProblem:
        """An error at the current position."""
        near = self.text[self.position :].partition("\n")[0][:40]
        return SyntaxProblem(f"line {self.line}: syntax error: {what}" + (f" near {near!r}" if near else ""))

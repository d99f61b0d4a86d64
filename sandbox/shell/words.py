"""Words: literals, quotes, parameters, substitutions."""

import re
from collections.abc import Callable

from sandbox.shell.source import Source
from sandbox.shell.tree import Arithmetic, Block, Literal, Parameter, Part, Substitution, Word

METACHARACTERS = " \t\n;&|<>()"
_NAME = re.compile(r"[A-Za-z_]\w*|\d+|[@*#?$!-]")
_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*|[0-9@*#?$!-]")
_OPERATOR = re.compile(r":[-=?+]|[-=?+]|%%|%|##|#|//|/")
_ORDINARY = re.compile(r"[\w.,:=+*@%^~-]+")
"""Characters without a special meaning anywhere in a word."""
_ESCAPED_IN_QUOTES = '$`"\\'
_ESCAPES = {"n": "\n", "t": "\t", "\\": "\\", "'": "'", '"': '"', "r": "\r"}


class Words:
    """Reads words from a source. `block` reads the commands of a substitution up to its parenthesis."""

    def __init__(self, source: Source, block: Callable[[Source, str], Block]) -> None:
        self._source = source
        self._block = block

    def word(self) -> Word:
        """The word that begins here. Raises SyntaxProblem."""
        return self._parts(METACHARACTERS, quoted=False)

    def text(self) -> Word:
        """The rest, as between double quotes: the inside of an arithmetic expression or a here-document."""
        return self._parts("", quoted=True)

    def _parts(self, ends: str, *, quoted: bool) -> Word:
        source, parts = self._source, _Parts()
        while not source.rest_is_empty and source.peek() not in ends:
            match source.peek():
                case "\\":
                    self._escaped(parts, quoted)
                case "'" if not quoted:
                    source.take()
                    parts.add(Literal(source.take_to("'"), quoted=True))
                case '"' if ends:
                    source.take()
                    for part in self._parts('"', quoted=True) or (Literal("", quoted=True),):
                        parts.add(part)
                    source.expect('"')
                case "$":
                    parts.add(self._dollar(quoted))
                case "`":
                    parts.add(self._backquoted(quoted))
                case _:
                    run = _ORDINARY.match(source.text, source.position)
                    parts.literal(source.take(len(run[0]) if run is not None else 1), quoted)
        return parts.word()

    def _escaped(self, parts: "_Parts", quoted: bool) -> None:
        source = self._source
        source.take()
        following = source.take()
        if following == "\n":
            return
        if quoted and following not in _ESCAPED_IN_QUOTES:
            parts.literal(f"\\{following}", quoted)
        else:
            parts.literal(following, quoted=True)

    def _dollar(self, quoted: bool) -> Part:
        source = self._source
        source.take()
        if source.accept("(("):
            return Arithmetic(self._arithmetic(), quoted)
        if source.accept("("):
            body = self._block(source, ")")
            source.expect(")")
            return Substitution(body, quoted)
        if source.accept("{"):
            return self._braced(quoted)
        if source.at("'") and not quoted:
            source.take()
            return Literal(_unescaped(source.take_to("'")), quoted=True)
        match = _PLAIN_NAME.match(source.text, source.position)
        if match is None:
            return Literal("$", quoted)
        source.take(len(match[0]))
        return Parameter(match[0], quoted=quoted)

    def _arithmetic(self) -> Word:
        source = self._source
        line, begin, depth = source.line, source.position, 0
        while depth or not source.at("))"):
            if source.rest_is_empty:
                raise source.problem("expected '))' before the end of the file")
            depth += {"(": 1, ")": -1}.get(source.take(), 0)
        inner = Source(source.text[begin : source.position], line)
        source.take(2)
        return Words(inner, self._block).text()

    def inside_arithmetic(self) -> Word:
        """The expression of `((…))` after its opening parentheses."""
        return self._arithmetic()

    def _braced(self, quoted: bool) -> Parameter:
        source = self._source
        counts = source.at("#") and not source.at("#}")
        if counts:
            source.take()
        match = _NAME.match(source.text, source.position)
        if match is None:
            raise source.problem("bad substitution")
        source.take(len(match[0]))
        index = source.take_to("]") if source.accept("[") else ""
        if counts:
            source.expect("}")
            return Parameter(match[0], index, "length", quoted=quoted)
        operand: Word = ()
        replacement: Word = ()
        operator = ""
        if not source.at("}"):
            known = _OPERATOR.match(source.text, source.position)
            if known is None:
                raise source.problem("bad substitution")
            operator = source.take(len(known[0]))
            replaces = operator in ("/", "//")
            # quotes around the whole do not quote a pattern in it
            is_pattern = operator[0] in "%#/"
            operand = self._parts("/}" if replaces else "}", quoted=quoted and not is_pattern)
            if replaces and source.accept("/"):
                replacement = self._parts("}", quoted=quoted)
        source.expect("}")
        return Parameter(match[0], index, operator, operand, replacement, quoted)

    def _backquoted(self, quoted: bool) -> Substitution:
        source = self._source
        source.take()
        line, text = source.line, []
        while not source.at("`"):
            if source.rest_is_empty:
                raise source.problem("expected '`' before the end of the file")
            if source.at("\\") and source.text[source.position + 1 : source.position + 2] in ("`", "\\", "$"):
                source.take()
            text.append(source.take())
        source.take()
        return Substitution(self._block(Source("".join(text), line), ""), quoted)


class _Parts:
    """Parts of a word; adjacent literals are merged."""

    def __init__(self) -> None:
        self._parts: list[Part] = []
        self._texts: list[str] = []
        self._quoted = False

    def literal(self, text: str, quoted: bool) -> None:
        if self._texts and quoted is not self._quoted:
            self._flush()
        self._texts.append(text)
        self._quoted = quoted

    def add(self, part: Part) -> None:
        self._flush()
        self._parts.append(part)

    def word(self) -> Word:
        self._flush()
        return tuple(self._parts)

    def _flush(self) -> None:
        if self._texts:
            self._parts.append(Literal("".join(self._texts), self._quoted))
            self._texts = []


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[0]), text)

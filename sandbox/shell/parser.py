"""The parser: from the text of a script to its tree."""

import functools
import re
from collections.abc import Iterator

from sandbox.shell.source import Source, SyntaxProblem
from sandbox.shell.tree import (
    AndOr,
    Assignment,
    Block,
    Calculation,
    Case,
    Command,
    Condition,
    For,
    Function,
    Group,
    If,
    Literal,
    Loop,
    Pipeline,
    Redirect,
    Redirected,
    Simple,
    Word,
)
from sandbox.shell.words import METACHARACTERS, Words

_RESERVED = re.compile(r"(?:[a-z]+|[{}!]|\[\[)(?=[\s;&|<>()]|$)")
_DEFINITION = re.compile(r"([A-Za-z_][\w-]*)[ \t]*\([ \t]*\)")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\+?)=")
_REDIRECT = re.compile(r"(\d*|&)(<<<|<<-|<<|<&|>&|>>|>\||<|>)")
_ENDS = ("then", "elif", "else", "fi", "do", "done", "esac", "}")
_LOOPS = ("while", "until")
_TERM_OPERATOR = re.compile(r"&&|\|\||[()]|[<>](?=\s)|!(?=\s)")


@functools.lru_cache(maxsize=512)
def parse(text: str) -> Block:
    """The commands of a script. Raises SyntaxProblem."""
    return _Parser(Source(text)).all()


class _Parser:
    """Reads commands from a source, by recursive descent."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._words = Words(source, _substituted)
        self._documents: list[tuple[Redirect, str, bool, bool]] = []

    def all(self) -> Block:
        """Everything to the end. Raises SyntaxProblem."""
        found = self.block()
        if not self._source.rest_is_empty:
            raise self._source.problem("unexpected word")
        return found

    def block(self) -> Block:
        """Commands up to a terminating word, parenthesis or `;;`; empty if there are none."""
        found: list[AndOr] = []
        self._lines()
        while not self._is_over():
            found.append(self._and_or())
            self._blanks()
            if self._source.at("&") and not self._source.at("&&"):
                raise self._source.problem("the sandbox runs nothing in the background")
            if self._source.at(";;"):
                break
            if not self._source.accept(";") and not self._source.at("\n") and not self._is_over():
                raise self._source.problem("unexpected word")
            self._lines()
        return tuple(found)

    def _is_over(self) -> bool:
        source = self._source
        return source.rest_is_empty or source.peek() == ")" or source.at(";;") or self._reserved() in _ENDS

    def _reserved(self) -> str:
        """The next word, if it may be a reserved one."""
        match = _RESERVED.match(self._source.text, self._source.position)
        return match[0] if match is not None else ""

    def _blanks(self) -> None:
        """Skip blanks, continued lines and a comment."""
        source = self._source
        while True:
            if source.peek() in (" ", "\t") and source.peek():
                source.take()
            elif not source.accept("\\\n"):
                break
        if source.at("#"):
            end = source.text.find("\n", source.position)
            source.position = len(source.text) if end < 0 else end

    def _lines(self) -> None:
        """Skip blanks and line ends, and read the here-documents of a line."""
        self._blanks()
        while self._source.accept("\n"):
            for document in self._documents:
                self._document(*document)
            self._documents.clear()
            self._blanks()

    def _document(self, redirect: Redirect, end: str, literal: bool, strips: bool) -> None:
        source, lines = self._source, []
        begin = source.line
        while True:
            if source.rest_is_empty:
                raise source.problem(f"here-document without its {end!r}")
            line = source.text[source.position :].partition("\n")[0]
            source.take(len(line) + 1)
            line = line.lstrip("\t") if strips else line
            if line == end:
                break
            lines.append(f"{line}\n")
        text = "".join(lines)
        redirect.target = (Literal(text, True),) if literal else Words(Source(text, begin), _substituted).text()

    def _and_or(self) -> AndOr:
        first, rest = self._pipeline(), []
        self._blanks()
        while operator := next((each for each in ("&&", "||") if self._source.accept(each)), ""):
            self._lines()
            rest.append((operator, self._pipeline()))
            self._blanks()
        return AndOr(first, tuple(rest))

    def _pipeline(self) -> Pipeline:
        negated = self._reserved() == "!"
        if negated:
            self._source.take()
            self._blanks()
        commands = [self._command()]
        self._blanks()
        while self._source.at("|") and not self._source.at("||"):
            self._source.take()
            self._lines()
            commands.append(self._command())
            self._blanks()
        return Pipeline(tuple(commands), negated)

    def _command(self) -> Command:
        """One command with its redirections."""
        command = self._compound()
        if command is None:
            return self._simple()
        redirects = tuple(self._redirects())
        return Redirected(command, redirects) if redirects else command

    def _compound(self) -> Command | None:
        """A compound command, or None if a simple one begins."""
        source, line = self._source, self._source.line
        if source.accept("(("):
            return Calculation(line, self._words.inside_arithmetic())
        if source.accept("("):
            return self._closed(")", forks=True)
        reserved = self._reserved()
        if reserved == "[[":
            source.take(2)
            return Condition(line, tuple(self._terms()))
        if reserved in ("{", "if", "for", "case", "function", *_LOOPS):
            source.take(len(reserved))
            return self._after(reserved)
        if reserved in (*_ENDS, "in"):
            raise source.problem(f"unexpected {reserved!r}")
        match = _DEFINITION.match(source.text, source.position)
        return self._function(match[1], len(match[0])) if match is not None else None

    def _after(self, reserved: str) -> Command:
        match reserved:
            case "{":
                return self._closed("}", forks=False)
            case "if":
                return self._if()
            case "for":
                return self._for()
            case "case":
                return self._case()
            case "function":
                self._blanks()
                name = self._source.take(len(self._reserved_name()))
                self._blanks()
                return self._function(name, 2 if self._source.at("()") else 0)
            case _:
                condition = self.block()
                self._keyword("do")
                body = self.block()
                self._keyword("done")
                return Loop(condition, body, reserved == "until")

    def _closed(self, end: str, *, forks: bool) -> Group:
        body = self.block()
        self._source.expect(end)
        return Group(body, forks)

    def _if(self) -> If:
        otherwise: Block = ()
        condition = self.block()
        self._keyword("then")
        branches = [(condition, self.block())]
        while self._reserved() == "elif":
            self._keyword("elif")
            condition = self.block()
            self._keyword("then")
            branches.append((condition, self.block()))
        if self._reserved() == "else":
            self._keyword("else")
            otherwise = self.block()
        self._keyword("fi")
        return If(tuple(branches), otherwise)

    def _for(self) -> For:
        self._blanks()
        name = self._source.take(len(self._reserved_name()))
        self._lines()
        words: list[Word] | None = None
        if self._reserved() == "in":
            self._keyword("in")
            words = list(self._some_words())
        self._blanks()
        self._source.accept(";")
        self._lines()
        self._keyword("do")
        body = self.block()
        self._keyword("done")
        return For(name, tuple(words) if words is not None else None, body)

    def _case(self) -> Case:
        self._blanks()
        word, items = self._words.word(), []
        self._lines()
        self._keyword("in")
        self._lines()
        while self._reserved() != "esac":
            self._source.accept("(")
            patterns = [self._pattern()]
            while self._source.accept("|"):
                patterns.append(self._pattern())
            self._source.expect(")")
            items.append((tuple(patterns), self.block()))
            self._source.accept(";;")
            self._lines()
        self._keyword("esac")
        return Case(word, tuple(items))

    def _pattern(self) -> Word:
        self._blanks()
        found = self._words.word()
        self._blanks()
        if not found:
            raise self._source.problem("expected a pattern")
        return found

    def _function(self, name: str, header: int) -> Function:
        self._source.take(header)
        self._lines()
        return Function(name, self._command())

    def _keyword(self, word: str) -> None:
        if self._reserved() != word:
            raise self._source.problem(f"expected {word!r}")
        self._source.take(len(word))

    def _reserved_name(self) -> str:
        match = re.compile(r"[A-Za-z_][\w-]*").match(self._source.text, self._source.position)
        if match is None:
            raise self._source.problem("expected a name")
        return match[0]

    def _some_words(self) -> Iterator[Word]:
        self._blanks()
        while not self._source.rest_is_empty and self._source.peek() not in METACHARACTERS:
            yield self._words.word()
            self._blanks()

    def _terms(self) -> Iterator[Word | str]:
        """The terms of `[[ … ]]`."""
        self._lines()
        while self._reserved_end() is False:
            if self._source.rest_is_empty:
                raise self._source.problem("expected ']]' before the end of the file")
            match = _TERM_OPERATOR.match(self._source.text, self._source.position)
            yield self._source.take(len(match[0])) if match is not None else self._words.word()
            self._lines()

    def _reserved_end(self) -> bool:
        return self._source.accept("]]")

    def _simple(self) -> Simple:
        line = self._source.line
        assignments: list[Assignment] = []
        words: list[Word] = []
        redirects: list[Redirect] = []
        while True:
            redirects.extend(self._redirects())
            self._blanks()
            if self._source.rest_is_empty or self._source.peek() in METACHARACTERS:
                break
            match = _ASSIGNMENT.match(self._source.text, self._source.position)
            if match is not None and not words:
                assignments.append(self._assignment(match))
            else:
                words.append(self._words.word())
        if not (assignments or words or redirects):
            raise self._source.problem("expected a command")
        return Simple(line, tuple(assignments), tuple(words), tuple(redirects))

    def _assignment(self, found: re.Match[str]) -> Assignment:
        self._source.take(len(found[0]))
        appends = bool(found[2])
        if not self._source.accept("("):
            return Assignment(found[1], self._words.word(), appends=appends)
        self._lines()
        values: list[Word] = []
        while not self._source.accept(")"):
            value = self._words.word()
            if not value:
                raise self._source.problem("expected ')'")
            values.append(value)
            self._lines()
        return Assignment(found[1], tuple(values), is_list=True, appends=appends)

    def _redirects(self) -> Iterator[Redirect]:
        self._blanks()
        while match := _REDIRECT.match(self._source.text, self._source.position):
            self._source.take(len(match[0]))
            operator = match[2]
            self._blanks()
            target = self._words.word()
            if not target:
                raise self._source.problem(f"expected a word after {operator!r}")
            default = 0 if operator.startswith("<") else 1
            descriptor = -1 if match[1] == "&" else int(match[1] or default)
            redirect = Redirect(descriptor, operator.rstrip("-") if operator != "<<-" else "<<", target)
            if operator in ("<<", "<<-"):
                literal = any(isinstance(part, Literal) and part.quoted for part in target)
                end = "".join(part.text for part in target if isinstance(part, Literal))
                self._documents.append((redirect, end, literal, operator == "<<-"))
            yield redirect
            self._blanks()


def _substituted(source: Source, end: str) -> Block:
    """The commands of a substitution: up to its parenthesis, or a whole backquoted text."""
    parser = _Parser(source)
    return parser.block() if end else parser.all()


__all__ = ["SyntaxProblem", "parse"]

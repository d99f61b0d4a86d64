"""The interpreter of a script's tree."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from sandbox.shell.builtins import BUILTINS
from sandbox.shell.conditions import Condition
from sandbox.shell.effects import Run, ShellError, Sleep, Steps, Surroundings
from sandbox.shell.expansion import Expansion
from sandbox.shell.parser import parse
from sandbox.shell.patterns import matches
from sandbox.shell.source import SyntaxProblem
from sandbox.shell.state import Exited, Input, Jumped, Returned, State, Streams
from sandbox.shell.tools import TOOLS
from sandbox.shell.tree import (
    AndOr,
    Assignment,
    Block,
    Calculation,
    Case,
    Command,
    For,
    Function,
    Group,
    If,
    Loop,
    Pipeline,
    Redirect,
    Redirected,
    Simple,
)
from sandbox.shell.tree import (
    Condition as Terms,
)

_NOT_FOUND = 127
_BUSY = 10_000
"""The number of commands without a wait that count as a second of script time."""


class Shell:
    """One shell, running one script in a container."""

    def __init__(self, name: str, host: Surroundings, environment: Mapping[str, str], streams: Streams) -> None:
        """`name` is the script's file, as in error messages."""
        self._name = name
        self.host = host
        self.state = State(dict(environment), set(environment))
        self.expansion = Expansion(lambda: self.state, host, self._substitute)
        self.streams = streams
        self.line = 1
        self._commands = 0
        self._substituted = 0
        self._tested = 0

    def run(self, text: str) -> Steps[int]:
        """Run a script to its end and return the exit status. An unsupported construct is its last error."""
        try:
            return (yield from self.block(parse(text), self.streams))
        except Exited as exited:
            return exited.code
        except SyntaxProblem as problem:
            self.streams.error.append(f"{self._name}: {problem}\n")
            return 2
        except ShellError as error:
            self.streams.error.append(f"{self._name}: line {self.line}: {error}\n")
            return 1

    def block(self, block: Block, streams: Streams) -> Steps[int]:
        """Run commands one after another."""
        for and_or in block:
            yield from self._and_or(and_or, streams)
        return self.state.status

    def source(self, text: str, streams: Streams) -> Steps[int]:
        """Run a text as if it stood here; report, but skip, lines that are not shell commands."""
        try:
            return (yield from self.block(parse(text), streams))
        except Returned as returned:
            return returned.code

    def forked(self, command: Command, streams: Streams) -> Steps[int]:
        """Run a command in a subshell."""
        before, self.state = self.state, self.state.copy()
        try:
            status = yield from self.command(command, streams)
        except Exited as exited:
            status = exited.code
        finally:
            self.state = before
        return status

    def _substitute(self, block: Block) -> Steps[str]:
        output: list[str] = []
        streams = Streams(Input(), output, self.streams.error)
        self._substituted = yield from self.forked(Group(block), streams)
        return "".join(output).rstrip("\n")

    def _and_or(self, each: AndOr, streams: Streams) -> Steps[None]:
        self._commands += 1
        if self._commands % _BUSY == 0:
            yield Sleep(1.0)
        last = each.first
        with self._testing(bool(each.rest)):
            yield from self._pipeline(each.first, streams)
        for number, (operator, pipeline) in enumerate(each.rest, 1):
            if (operator == "&&") is (self.state.status == 0):
                with self._testing(number < len(each.rest)):
                    yield from self._pipeline(pipeline, streams)
                last = pipeline
        ends = last is (each.rest[-1][1] if each.rest else each.first) and not last.negated
        if self.state.status and ends and "e" in self.state.options and not self._tested:
            raise Exited(self.state.status)

    @contextmanager
    def _testing(self, tests: bool = True) -> Iterator[None]:
        """Commands whose failure does not end the script, because their status is a condition."""
        self._tested += tests
        try:
            yield
        finally:
            self._tested -= tests

    def _pipeline(self, pipeline: Pipeline, streams: Streams) -> Steps[None]:
        if len(pipeline.commands) == 1:
            status = yield from self.command(pipeline.commands[0], streams)
        else:
            status = yield from self._piped(pipeline.commands, streams)
        self.state.status = int(not status) if pipeline.negated else status

    def _piped(self, commands: tuple[Command, ...], streams: Streams) -> Steps[int]:
        statuses, read = [], streams.input
        for number, command in enumerate(commands, 1):
            written = streams.output if number == len(commands) else []
            statuses.append((yield from self.forked(command, Streams(read, written, streams.error))))
            read = Input("".join(written)) if number < len(commands) else read
        failed = [status for status in statuses if status]
        return failed[-1] if failed and "pipefail" in self.state.options else statuses[-1]

    def command(self, command: Command, streams: Streams) -> Steps[int]:
        """Run one command and return its status."""
        match command:
            case Simple():
                status = yield from self._simple(command, streams)
            case If():
                status = yield from self._if(command, streams)
            case Loop():
                status = yield from self._loop(command, streams)
            case For():
                status = yield from self._for(command, streams)
            case Case():
                status = yield from self._case(command, streams)
            case Group(forks=True):
                status = yield from self.forked(Group(command.body), streams)
            case Group():
                self.state.status = 0
                status = yield from self.block(command.body, streams)
            case Function():
                self.state.functions[command.name] = command.body
                status = 0
            case Terms():
                self.line = command.line
                status = int(not (yield from Condition(command.terms, self.expansion, self.host).value()))
            case Calculation():
                self.line = command.line
                status = int(not self.expansion.calculated((yield from self.expansion.text(command.expression))))
            case Redirected():
                status = yield from self._redirected(command.redirects, streams, command.command)
        self.state.status = status
        return status

    def _if(self, command: If, streams: Streams) -> Steps[int]:
        for condition, body in command.branches:
            if (yield from self._holds(condition, streams)):
                return (yield from self.command(Group(body), streams))
        if command.otherwise:
            return (yield from self.command(Group(command.otherwise), streams))
        return 0

    def _holds(self, condition: Block, streams: Streams) -> Steps[bool]:
        with self._testing():
            status = yield from self.block(condition, streams)
        return status == 0

    def _loop(self, command: Loop, streams: Streams) -> Steps[int]:
        status = 0
        while (yield from self._holds(command.condition, streams)) is not command.until:
            try:
                status = yield from self.block(command.body, streams)
            except Jumped as jumped:
                if not _goes_on(jumped):
                    return 0
        return status

    def _for(self, command: For, streams: Streams) -> Steps[int]:
        values = list(self.state.arguments)
        if command.words is not None:
            values = yield from self.expansion.fields(command.words)
        status = 0
        for value in values:
            self.state.assign(command.name, value)
            try:
                status = yield from self.block(command.body, streams)
            except Jumped as jumped:
                if not _goes_on(jumped):
                    return 0
        return status

    def _case(self, command: Case, streams: Streams) -> Steps[int]:
        text = yield from self.expansion.text(command.word)
        for patterns, body in command.items:
            for each in patterns:
                pattern = yield from self.expansion.pattern(each)
                if matches(pattern, text):
                    return (yield from self.command(Group(body), streams))
        return 0

    def _simple(self, command: Simple, streams: Streams) -> Steps[int]:
        self.line = command.line
        self._substituted = 0
        words = yield from self.expansion.fields(command.words)
        if not words:
            yield from self._assign(command.assignments)
            if command.redirects:
                return (yield from self._redirected(command.redirects, streams, None))
            return self._substituted
        hidden = {assignment.name: self.state.variables.get(assignment.name) for assignment in command.assignments}
        yield from self._assign(command.assignments)
        self.line = command.line
        if not command.redirects:
            status = yield from self._invoke(words, streams)
        else:
            opened = yield from self._open(command.redirects, streams)
            status = 1 if opened is None else (yield from self._invoke(words, opened[0]))
            self._close(opened)
        self._restore(hidden)
        return status

    def _assign(self, assignments: tuple[Assignment, ...]) -> Steps[None]:
        for assignment in assignments:
            before = self.state.variables.get(assignment.name)
            if assignment.is_list:
                words = tuple(word for word in assignment.value if isinstance(word, tuple))
                values = yield from self.expansion.fields(words)
                kept = ([before] if isinstance(before, str) else before or []) if assignment.appends else []
                self.state.variables[assignment.name] = [*kept, *values]
                continue
            text = yield from self.expansion.text(assignment.value)  # type: ignore[arg-type]  # it is no list
            first = self.state.text(assignment.name) or "" if assignment.appends else ""
            self.state.assign(assignment.name, first + text)

    def _restore(self, variables: Mapping[str, str | list[str] | None]) -> None:
        for name, value in variables.items():
            if value is None:
                self.state.variables.pop(name, None)
            else:
                self.state.variables[name] = value

    def _invoke(self, words: list[str], streams: Streams) -> Steps[int]:
        """Run a function, a builtin, or a program."""
        name, arguments = words[0], words[1:]
        if name in self.state.functions:
            return (yield from self._call(self.state.functions[name], arguments, streams))
        builtin = BUILTINS.get(name)
        if builtin is not None:
            return (yield from builtin(self, arguments, streams))
        return (yield from self.program(words, streams, replaces=False))

    def program(self, words: list[str], streams: Streams, *, replaces: bool) -> Steps[int]:
        """Run a tool or a program of the image."""
        base = words[0].rpartition("/")[2]
        tool = TOOLS.get(base) if words[0] in (base, f"/bin/{base}", f"/usr/bin/{base}") else None
        if tool is not None:
            return (yield from tool(words[1:], streams, self.host))
        if self.host.has_program(words[0]):
            if words[1:] == ["--help"] and (text := self.host.help_of(words[0])):
                streams.output.append(text)
                return 0
            code = yield Run(tuple(words), self.state.environment(), replaces)
            return code if isinstance(code, int) else 1
        streams.error.append(f"{self._name}: line {self.line}: {words[0]}: not found\n")
        return _NOT_FOUND

    def _call(self, body: Command, arguments: list[str], streams: Streams) -> Steps[int]:
        before, self.state.arguments = self.state.arguments, arguments
        self.state.locals.append({})
        try:
            return (yield from self.command(body, streams))
        except Returned as returned:
            return returned.code
        finally:
            self.state.arguments = before
            self._restore(self.state.locals.pop())

    def _redirected(self, redirects: tuple[Redirect, ...], streams: Streams, command: Command | None) -> Steps[int]:
        opened = yield from self._open(redirects, streams)
        if opened is None:
            return 1
        try:
            return 0 if command is None else (yield from self.command(command, opened[0]))
        finally:
            self._close(opened)

    def _open(
        self, redirects: tuple[Redirect, ...], streams: Streams
    ) -> Steps[tuple[Streams, list[tuple[str, list[str], bool]]] | None]:
        """Redirected streams and the files to write; None if an input file does not exist."""
        files: list[tuple[str, list[str], bool]] = []
        channels: dict[int, list[str]] = {1: streams.output, 2: streams.error}
        read = streams.input
        for redirect in redirects:
            target = yield from self.expansion.text(redirect.target)
            if redirect.operator in ("<<", "<<<"):
                read = Input(target if redirect.operator == "<<" else f"{target}\n")
            elif redirect.operator == "<":
                text = self.host.read(target)
                if text is None:
                    streams.error.append(f"{self._name}: line {self.line}: {target}: No such file or directory\n")
                    return None
                read = Input(text)
            elif redirect.operator in (">&", "<&") and target.isdecimal():
                channels[redirect.descriptor] = channels.get(int(target), [])
            elif target in ("/dev/stdout", "/dev/stderr"):
                channels[redirect.descriptor] = channels[1 if target == "/dev/stdout" else 2]
            else:
                written: list[str] = []
                for descriptor in (1, 2) if redirect.descriptor == -1 else (redirect.descriptor,):
                    channels[descriptor] = written
                if target != "/dev/null":
                    files.append((target, written, redirect.operator == ">>"))
        return Streams(read, channels[1], channels[2]), files

    def _close(self, opened: tuple[Streams, list[tuple[str, list[str], bool]]] | None) -> None:
        for path, texts, appends in opened[1] if opened is not None else ():
            before = self.host.read(path) or "" if appends else ""
            self.host.write(path, before + "".join(texts))


def _goes_on(jumped: Jumped) -> bool:
    """True if the loop continues after a jump; a jump for an outer loop is passed on."""
    if jumped.levels > 1:
        raise Jumped(jumped.levels - 1, goes_on=jumped.goes_on)
    return jumped.goes_on

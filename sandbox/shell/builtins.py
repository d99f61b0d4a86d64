"""The commands of the shell itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from sandbox.shell import conditions
from sandbox.shell.effects import ShellError, Sleep, Steps
from sandbox.shell.expansion import split
from sandbox.shell.state import Exited, Jumped, Returned, Streams
from sandbox.shell.tools import TOOLS

if TYPE_CHECKING:
    from sandbox.shell.shell import Shell

Builtin = Callable[["Shell", list[str], Streams], Steps[int]]

_OPTIONS = "euxvfnbhm"
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def _steps(of: Callable[[Shell, list[str], Streams], int]) -> Builtin:
    """A builtin that never waits."""

    def run(shell: Shell, arguments: list[str], streams: Streams) -> Steps[int]:
        yield from ()
        return of(shell, arguments, streams)

    return run


def _test(shell: Shell, arguments: list[str], streams: Streams) -> int:  # noqa: ARG001
    return int(not conditions.test(arguments, shell.host))


def _bracket(shell: Shell, arguments: list[str], streams: Streams) -> int:
    if not arguments or arguments[-1] != "]":
        raise ShellError("[: missing ']'")
    return _test(shell, arguments[:-1], streams)


def _set(shell: Shell, arguments: list[str], streams: Streams) -> int:  # noqa: ARG001
    words = list(arguments)
    while words and words[0][:1] in ("-", "+") and len(words[0]) > 1:
        word = words.pop(0)
        if word == "--":
            shell.state.arguments = words
            return 0
        for letter in word[1:]:
            option = words.pop(0) if letter == "o" and words else letter
            if option not in ("pipefail", "errexit", "nounset", "xtrace") and option not in _OPTIONS:
                raise ShellError(f"set: the sandbox does not know the option {option!r}")
            option = {"errexit": "e", "nounset": "u", "xtrace": "x"}.get(option, option)
            (shell.state.options.add if word[0] == "-" else shell.state.options.discard)(option)
    if words:
        shell.state.arguments = words
    return 0


def _export(shell: Shell, arguments: list[str], streams: Streams) -> int:  # noqa: ARG001
    for argument in arguments:
        name, given, value = argument.partition("=")
        if given:
            shell.state.assign(name, value)
        shell.state.exported.add(name)
    return 0


def _local(shell: Shell, arguments: list[str], streams: Streams) -> int:  # noqa: ARG001
    if not shell.state.locals:
        raise ShellError("local: can only be used in a function")
    for argument in arguments:
        name, given, value = argument.partition("=")
        shell.state.locals[-1].setdefault(name, shell.state.variables.get(name))
        if given:
            shell.state.assign(name, value)
        else:
            shell.state.variables.pop(name, None)
    return 0


def _unset(shell: Shell, arguments: list[str], streams: Streams) -> int:  # noqa: ARG001
    for name in arguments:
        if name in ("-f", "-v"):
            continue
        shell.state.variables.pop(name, None)
        shell.state.functions.pop(name, None)
    return 0


def _shift(shell: Shell, arguments: list[str], streams: Streams) -> int:  # noqa: ARG001
    count = conditions.number(arguments[0]) if arguments else 1
    if count > len(shell.state.arguments):
        return 1
    del shell.state.arguments[:count]
    return 0


def _read(shell: Shell, arguments: list[str], streams: Streams) -> int:
    raw = any(argument.startswith("-") and "r" in argument for argument in arguments)
    names = [argument for argument in arguments if not argument.startswith("-")] or ["REPLY"]
    line = streams.input.line()
    if line is None:
        for name in names:
            shell.state.assign(name, "")
        return 1
    separators = shell.state.text("IFS")
    separators = " \t\n" if separators is None else separators
    text = line if raw else line.replace("\\", "")
    rest = text.strip("".join(each for each in separators if each.isspace()))
    for name in names[:-1]:
        pieces = split(rest, separators)
        shell.state.assign(name, pieces[0])
        rest = rest[len(pieces[0]) :].lstrip(separators)
    shell.state.assign(names[-1], rest)
    return 0


def _exit(shell: Shell, arguments: list[str], streams: Streams) -> int:  # noqa: ARG001
    raise Exited(conditions.number(arguments[0]) % 256 if arguments else shell.state.status)


def _return(shell: Shell, arguments: list[str], streams: Streams) -> int:  # noqa: ARG001
    raise Returned(conditions.number(arguments[0]) % 256 if arguments else shell.state.status)


def _break(shell: Shell, arguments: list[str], streams: Streams) -> int:  # noqa: ARG001
    raise Jumped(conditions.number(arguments[0]) if arguments else 1, goes_on=False)


def _continue(shell: Shell, arguments: list[str], streams: Streams) -> int:  # noqa: ARG001
    raise Jumped(conditions.number(arguments[0]) if arguments else 1, goes_on=True)


def _trap(shell: Shell, arguments: list[str], streams: Streams) -> int:  # noqa: ARG001
    if len(arguments) > 1:
        shell.state.traps.update({argument.removeprefix("SIG"): arguments[0] for argument in arguments[1:]})
    return 0


def _exec(shell: Shell, arguments: list[str], streams: Streams) -> Steps[int]:
    if not arguments:
        return 0
    raise Exited((yield from shell.program(arguments, streams, replaces=True)))


def _eval(shell: Shell, arguments: list[str], streams: Streams) -> Steps[int]:
    return (yield from shell.source(" ".join(arguments), streams))


def _source(shell: Shell, arguments: list[str], streams: Streams) -> Steps[int]:
    text = shell.host.read(arguments[0]) if arguments else None
    if text is None:
        streams.error.append(f"source: {' '.join(arguments)}: No such file or directory\n")
        return 1
    return (yield from shell.source(text, streams))


def _sleep(shell: Shell, arguments: list[str], streams: Streams) -> Steps[int]:  # noqa: ARG001
    seconds = 0.0
    for argument in arguments:
        try:
            seconds += (
                float("inf")
                if argument == "infinity"
                else float(argument.rstrip("smhd")) * _UNITS.get(argument[-1:], 1.0)
            )
        except ValueError:
            streams.error.append(f"sleep: invalid time interval {argument!r}\n")
            return 1
    yield Sleep(seconds)
    return 0


def _command(shell: Shell, arguments: list[str], streams: Streams) -> Steps[int]:
    if arguments[:1] != ["-v"]:
        return (yield from shell.program(arguments, streams, replaces=False)) if arguments else 0
    name = arguments[1] if len(arguments) > 1 else ""
    known = name in shell.state.functions or name in BUILTINS or name in TOOLS or shell.host.has_program(name)
    streams.output.append(f"{name}\n" if known else "")
    return int(not known)


BUILTINS: Mapping[str, Builtin] = {
    ":": _steps(lambda shell, arguments, streams: 0),  # noqa: ARG005
    "true": _steps(lambda shell, arguments, streams: 0),  # noqa: ARG005
    "false": _steps(lambda shell, arguments, streams: 1),  # noqa: ARG005
    "test": _steps(_test),
    "[": _steps(_bracket),
    "set": _steps(_set),
    "export": _steps(_export),
    "readonly": _steps(_export),
    "declare": _steps(_export),
    "local": _steps(_local),
    "unset": _steps(_unset),
    "shift": _steps(_shift),
    "read": _steps(_read),
    "exit": _steps(_exit),
    "return": _steps(_return),
    "break": _steps(_break),
    "continue": _steps(_continue),
    "trap": _steps(_trap),
    "cd": _steps(lambda shell, arguments, streams: 0),  # noqa: ARG005
    "umask": _steps(lambda shell, arguments, streams: 0),  # noqa: ARG005
    "ulimit": _steps(lambda shell, arguments, streams: 0),  # noqa: ARG005
    "exec": _exec,
    "eval": _eval,
    "source": _source,
    ".": _source,
    "sleep": _sleep,
    "command": _command,
}

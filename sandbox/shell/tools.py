"""The tools of an image that scripts call. An unsupported option ends the script."""

import base64
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from sandbox.shell.effects import ShellError, Sleep, Steps, Surroundings
from sandbox.shell.expressions import sed_commands, to_python
from sandbox.shell.network_tools import curl, dig, getent, nc, nslookup, wget
from sandbox.shell.state import Streams

Tool = Callable[[list[str], Streams, Surroundings], Steps[int]]

_ESCAPES = {"n": "\n", "t": "\t", "\\": "\\", "r": "\r"}
_RANGES = {"[:upper:]": "A-Z", "[:lower:]": "a-z", "[:digit:]": "0-9", "[:space:]": " \t\n\r"}


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool that only transforms text: its flags (with values), operands and input."""

    name: str
    flags: Mapping[str, str]
    operands: list[str]
    streams: Streams
    host: Surroundings

    def input(self, files: list[str]) -> str:
        """The text of files, or of the standard input without files. Raises LookupError."""
        texts = [self.streams.input.all() if file == "-" else self.host.read(file) for file in files or ["-"]]
        missing = [file for file, text in zip(files, texts, strict=False) if text is None]
        if missing:
            raise LookupError(f"{self.name}: {missing[0]}: No such file or directory")
        return "".join(text or "" for text in texts)


def _tool(name: str, of: Callable[[Call], int], flags: str = "", valued: str = "") -> Tool:
    """A tool that never waits. `flags` are its letters, `valued` those with a value."""

    def run(arguments: list[str], streams: Streams, host: Surroundings) -> Steps[int]:
        yield from ()
        given, operands = parsed(name, arguments, flags, valued)
        try:
            return of(Call(name, given, operands, streams, host))
        except LookupError as missing:
            streams.error.append(f"{missing.args[0]}\n")
            return 1

    return run


def parsed(name: str, arguments: list[str], flags: str, valued: str) -> tuple[dict[str, str], list[str]]:
    """Flags with their values, and operands. Raises ShellError for unknown flags."""
    given: dict[str, str] = {}
    operands: list[str] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word == "--":
            operands.extend(rest)
            break
        if not word.startswith("-") or word == "-":
            operands.append(word)
            continue
        letters = word[1:]
        while letters:
            letter, letters = letters[0], letters[1:]
            if letter in valued:
                given[letter] = letters or (rest.pop(0) if rest else "")
                letters = ""
            elif letter in flags:
                given[letter] = ""
            else:
                raise ShellError(f"{name}: the sandbox does not know the option {word!r}")
    return given, operands


def _echo(arguments: list[str], streams: Streams, host: Surroundings) -> Steps[int]:  # noqa: ARG001
    yield from ()
    words, end, escapes = list(arguments), "\n", False
    while words and re.fullmatch(r"-[neE]+", words[0]):
        end, escapes = "" if "n" in words[0] else end, escapes or "e" in words[0]
        words.pop(0)
    text = " ".join(words)
    streams.output.append((_with_escapes(text) if escapes else text) + end)
    return 0


def _printf(arguments: list[str], streams: Streams, host: Surroundings) -> Steps[int]:  # noqa: ARG001
    yield from ()
    if not arguments:
        raise ShellError("printf: expected a format")
    form, values = _with_escapes(arguments[0]), list(arguments[1:])
    slots = len(re.findall(r"%[sdb]", form))
    texts: list[str] = []
    while values or not texts:
        texts.append(
            re.sub(r"%([sdb%])", lambda found: "%" if found[1] == "%" else values.pop(0) if values else "", form)
        )
        if not slots:
            break
    streams.output.append("".join(texts))
    return 0


def _cat(call: Call) -> int:
    call.streams.output.append(call.input(call.operands))
    return 0


def _tr(call: Call) -> int:
    text = call.streams.input.all()
    sets = [_characters(each) for each in call.operands]
    if "d" in call.flags:
        call.streams.output.append("".join(each for each in text if each not in sets[0]))
        return 0
    if "s" in call.flags:
        text = re.sub(f"([{re.escape(''.join(sets[-1]))}])\\1+", r"\1", text)
    if len(sets) > 1:
        second = sets[1] + sets[1][-1:] * (len(sets[0]) - len(sets[1]))
        text = text.translate(dict(zip(map(ord, sets[0]), second, strict=False)))
    call.streams.output.append(text)
    return 0


def _cut(call: Call) -> int:
    delimiter = call.flags.get("d", "\t")
    kind = "f" if "f" in call.flags else "c"
    for line in _lines(call.input(call.operands)):
        pieces = line.split(delimiter) if kind == "f" else list(line)
        if kind == "f" and len(pieces) == 1:
            call.streams.output.append(f"{line}\n")
            continue
        chosen = [piece for number, piece in enumerate(pieces, 1) if _chosen(number, call.flags[kind])]
        call.streams.output.append((delimiter if kind == "f" else "").join(chosen) + "\n")
    return 0


def _sed(call: Call) -> int:
    operands = list(call.operands)
    script = call.flags.get("e") or (operands.pop(0) if operands else "")
    commands = sed_commands(script, extended="E" in call.flags or "r" in call.flags)
    text = call.input(operands)
    changed = "\n".join(_edited(line, commands) for line in text.split("\n"))
    if "i" in call.flags:
        call.host.write(operands[0], changed)
    else:
        call.streams.output.append(changed)
    return 0


def _edited(line: str, commands: list[Callable[[str], str]]) -> str:
    for command in commands:
        line = command(line)
    return line


def _grep(call: Call) -> int:
    operands = list(call.operands)
    text = call.flags.get("e") or operands.pop(0)
    pattern = re.escape(text) if "F" in call.flags else to_python(text, extended="E" in call.flags)
    compiled = re.compile(pattern, re.IGNORECASE if "i" in call.flags else 0)
    found = [line for line in _lines(call.input(operands)) if bool(compiled.search(line)) is not ("v" in call.flags)]
    if "c" in call.flags:
        call.streams.output.append(f"{len(found)}\n")
    elif "q" not in call.flags:
        if "o" in call.flags:
            found = [each[0] for line in found for each in compiled.finditer(line)]
        call.streams.output.extend(f"{line}\n" for line in found)
    return int(not found)


def _awk(call: Call) -> int:
    """`awk -F= '{print $2}'`."""
    operands = list(call.operands)
    program = operands.pop(0) if operands else ""
    match = re.fullmatch(r"\s*\{\s*print\s+\$(\d+|NF)\s*;?\s*\}\s*", program)
    if match is None:
        raise ShellError(f"awk: the sandbox does not know {program!r}")
    separator = call.flags.get("F")
    for line in _lines(call.input(operands)):
        pieces = line.split(separator) if separator else line.split()
        place = len(pieces) if match[1] == "NF" else int(match[1])
        value = line if place == 0 else pieces[place - 1] if place <= len(pieces) else ""
        call.streams.output.append(f"{value}\n")
    return 0


def _base64(call: Call) -> int:
    text = call.input(call.operands)
    if "d" in call.flags:
        call.streams.output.append(base64.b64decode(text).decode(errors="replace"))
        return 0
    encoded = base64.b64encode(text.encode()).decode()
    width = int(call.flags.get("w", 76))
    lines = [encoded[begin : begin + width] for begin in range(0, len(encoded), width)] if width else [encoded]
    call.streams.output.append("\n".join(lines) + ("\n" if width else ""))
    return 0


def _head(call: Call) -> int:
    lines = _lines(call.input(call.operands))
    call.streams.output.extend(f"{line}\n" for line in lines[: int(call.flags.get("n", 10))])
    return 0


def _wc(call: Call) -> int:
    text = call.input(call.operands)
    counts = {"l": text.count("\n"), "w": len(text.split()), "c": len(text.encode())}
    call.streams.output.append(" ".join(str(counts[flag]) for flag in call.flags or counts) + "\n")
    return 0


def _sort(call: Call) -> int:
    lines = sorted(_lines(call.input(call.operands)), reverse="r" in call.flags)
    if "n" in call.flags:
        lines.sort(key=lambda line: int(re.match(r"\s*(\d*)", line)[1] or 0))  # type: ignore[index]  # it matches
    call.streams.output.extend(f"{line}\n" for line in (dict.fromkeys(lines) if "u" in call.flags else lines))
    return 0


def _tail(arguments: list[str], streams: Streams, host: Surroundings) -> Steps[int]:
    given, operands = parsed("tail", arguments, "fFq", "nc")
    try:
        lines = _lines(Call("tail", given, operands, streams, host).input(operands))
    except LookupError as missing:
        streams.error.append(f"{missing.args[0]}\n")
        return 1
    count = given.get("n", "10")
    chosen = lines[int(count[1:]) - 1 :] if count.startswith("+") else lines[len(lines) - min(int(count), len(lines)) :]
    streams.output.extend(f"{line}\n" for line in chosen)
    if "f" in given or "F" in given:
        yield Sleep(float("inf"))
    return 0


def _od(call: Call) -> int:
    """`od -An -N2 -tu2 /dev/urandom`: a random number of the given size."""
    if call.operands != ["/dev/urandom"] or not call.flags.get("t", "").startswith("u"):
        raise ShellError("od: the sandbox reads numbers from /dev/urandom only")
    call.streams.output.append(f" {call.host.random(256 ** int(call.flags.get('N', 2)))}\n")
    return 0


def _hostname(call: Call) -> int:
    address = call.host.address
    text = f"{address} " if "I" in call.flags else address if "i" in call.flags else call.host.hostname
    call.streams.output.append(f"{text}\n")
    return 0


def _base_name(call: Call) -> int:
    name = call.operands[0].rstrip("/").rpartition("/")[2]
    suffix = call.operands[1] if len(call.operands) > 1 else ""
    call.streams.output.append(f"{name.removesuffix(suffix) or name}\n")
    return 0


def _directory_name(call: Call) -> int:
    name = call.operands[0].rstrip("/").rpartition("/")[0]
    call.streams.output.append(f"{name or '.'}\n")
    return 0


def _touch(call: Call) -> int:
    for path in call.operands:
        if call.host.read(path) is None:
            call.host.write(path, "")
    return 0


def _make_directory(call: Call) -> int:
    for path in call.operands:
        call.host.write(f"{path.rstrip('/')}/.", "")
    return 0


def _copy(call: Call) -> int:
    *sources, target = call.operands
    call.host.write(target, call.input(sources))
    return 0


def _remove(call: Call) -> int:
    there = [path for path in call.operands if call.host.read(path) is not None]
    for path in there:
        call.host.remove(path)
    return int(len(there) < len(call.operands) and "f" not in call.flags)


def _nothing(call: Call) -> int:  # noqa: ARG001
    """Accept a tool without an effect in the sandbox."""
    return 0


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _with_escapes(text: str) -> str:
    return re.sub(r"\\([ntr\\])", lambda found: _ESCAPES[found[1]], text)


def _characters(text: str) -> list[str]:
    """The characters of a `tr` set."""
    for name, meant in _RANGES.items():
        text = text.replace(name, meant)
    return list(_ranged(_with_escapes(text)))


def _ranged(text: str) -> Iterator[str]:
    position = 0
    while position < len(text):
        if text[position + 1 : position + 2] == "-" and position + 2 < len(text):
            yield from map(chr, range(ord(text[position]), ord(text[position + 2]) + 1))
            position += 3
        else:
            yield text[position]
            position += 1


def _chosen(number: int, ranges: str) -> bool:
    """True if `cut` keeps a field: `2`, `1,3`, `2-`, `-2`."""
    for each in ranges.split(","):
        low, dash, high = each.partition("-")
        if int(low or 1) <= number <= int(high or (10**9 if dash else low)):
            return True
    return False


TOOLS: Mapping[str, Tool] = {
    "echo": _echo,
    "printf": _printf,
    "tail": _tail,
    "wget": wget,
    "curl": curl,
    "dig": dig,
    "nc": nc,
    "nslookup": nslookup,
    "getent": getent,
    "cat": _tool("cat", _cat),
    "tr": _tool("tr", _tr, flags="ds"),
    "cut": _tool("cut", _cut, valued="dfc"),
    "sed": _tool("sed", _sed, flags="Eri", valued="e"),
    "grep": _tool("grep", _grep, flags="qvEFico", valued="e"),
    "awk": _tool("awk", _awk, valued="F"),
    "base64": _tool("base64", _base64, flags="d", valued="w"),
    "head": _tool("head", _head, valued="n"),
    "wc": _tool("wc", _wc, flags="lwc"),
    "sort": _tool("sort", _sort, flags="run"),
    "od": _tool("od", _od, valued="ANt"),
    "hostname": _tool("hostname", _hostname, flags="Iifs"),
    "basename": _tool("basename", _base_name),
    "dirname": _tool("dirname", _directory_name),
    "touch": _tool("touch", _touch),
    "mkdir": _tool("mkdir", _make_directory, flags="p", valued="m"),
    "cp": _tool("cp", _copy, flags="frap"),
    "rm": _tool("rm", _remove, flags="f"),
    "sysctl": _tool("sysctl", _nothing, flags="wpeq"),
    "chmod": _tool("chmod", _nothing, flags="R"),
    "chown": _tool("chown", _nothing, flags="R"),
}

"""The pieces that start scripts are made of: POSIX sh, one step each, no placeholders. Values of a spec as its words.

What depends on the spec is a variable that the script sets before the pieces that use it.

Nothing in a value runs. Where v1.6 lets a value refer to the pod's environment (`spec.tidb.arguments`, Prometheus'
`commandOptions`), `$NAME` and `${NAME}` still do; every other `$` and every backquote is itself.

A word is the same in the `command` of a container, where the kubelet replaces `$(NAME)` by a variable and `$$` by `$`
before the shell reads it: no word has `$(` or `$$` in one piece.
"""

import functools
import importlib.resources
import re
import shlex

_NOT_A_VARIABLE = re.compile(r"\$(?![A-Za-z_]|\{[A-Za-z_][A-Za-z0-9_]*\})")
_OF_THE_KUBELET = re.compile(r"\$(?=[$(])")


def assemble(shebang: str, purpose: str, *parts: str) -> str:
    """A script of the parts that are not empty, with a blank line between them."""
    return "\n".join([f"{shebang}\n# {purpose}\n", *(part for part in parts if part)])


@functools.cache
def fragment(name: str, room: str = __name__) -> str:
    """The text of `<name>.sh` in a package, by default this one, ending in a newline. Raises FileNotFoundError."""
    return importlib.resources.files(room).joinpath(f"{name}.sh").read_text("utf-8")


def settings(**values: str | int) -> str:
    """Assignments of literal values."""
    return "".join(f"{name}={quoted(value)}\n" for name, value in values.items())


def expressions(**values: str) -> str:
    """Assignments of what the shell works out."""
    return "".join(f'{name}="{value}"\n' for name, value in values.items())


def quoted(value: str | int) -> str:
    """A value as one word, with quotes only if it needs them."""
    return _OF_THE_KUBELET.sub("$''", shlex.quote(str(value)))


def expanding_words(text: str) -> list[str]:
    """The words of a text, split at white space, with variables expanded; quoted only if necessary."""
    return [word if quoted(word) == word else _expanding(word) for word in text.split()]


def expanding_strings(text: str) -> list[str]:
    """Like `expanding_words`, with each word in double quotes."""
    return [_expanding(word) for word in text.split()]


def _expanding(word: str) -> str:
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("`", "\\`")
    literal = _OF_THE_KUBELET.sub('$""', _NOT_A_VARIABLE.sub(r"\\$", escaped))
    return f'"{literal}"'

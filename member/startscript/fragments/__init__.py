"""The pieces that start scripts are made of: POSIX sh, one step each, no placeholders.

What depends on the spec is a variable that the script sets before the pieces that use it.
"""

import functools
import importlib.resources

from member.startscript.shell import quoted


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

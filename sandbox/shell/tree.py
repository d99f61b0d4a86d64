"""The syntax tree of a script."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Literal:
    """Literal text. Quoted text is no pattern, and makes a field even if it is empty."""

    text: str
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Parameter:
    """`$name`, `${name[index]}`, `${name:-operand}`, `${name/operand/replacement}`, and `${#name}` as "length"."""

    name: str
    index: str = ""
    operator: str = ""
    operand: Word = ()
    replacement: Word = ()
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Substitution:
    """`$(…)` and backquotes."""

    body: Block
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """`$((…))`."""

    expression: Word
    quoted: bool = False


Part = Literal | Parameter | Substitution | Arithmetic
Word = tuple[Part, ...]


@dataclass(slots=True)
class Redirect:
    """`2>file`, `<<END`, `<<<word`. The text of a here-document becomes the target once its lines are read."""

    descriptor: int
    operator: str
    target: Word


@dataclass(frozen=True, slots=True)
class Assignment:
    """`name=word`, `name+=word`, `name=(words)`."""

    name: str
    value: Word | tuple[Word, ...]
    is_list: bool = False
    appends: bool = False


@dataclass(frozen=True, slots=True)
class Simple:
    """Assignments, a command with its arguments, or both."""

    line: int
    assignments: tuple[Assignment, ...]
    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...] = ()


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Commands that each read the output of the previous one."""

    commands: tuple[Command, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class AndOr:
    """Pipelines, all but the first after `&&` or `||`."""

    first: Pipeline
    rest: tuple[tuple[str, Pipeline], ...] = ()


@dataclass(frozen=True, slots=True)
class If:
    """Conditions with their branches, and what `else` says."""

    branches: tuple[tuple[Block, Block], ...]
    otherwise: Block = ()


@dataclass(frozen=True, slots=True)
class Loop:
    """`while` and `until`."""

    condition: Block
    body: Block
    until: bool = False


@dataclass(frozen=True, slots=True)
class For:
    """`for name in words`; without words, over the arguments."""

    name: str
    words: tuple[Word, ...] | None
    body: Block


@dataclass(frozen=True, slots=True)
class Case:
    """A word, and commands for the patterns that it matches."""

    word: Word
    items: tuple[tuple[tuple[Word, ...], Block], ...]


@dataclass(frozen=True, slots=True)
class Group:
    """`{ …; }`, and `( … )` in a subshell."""

    body: Block
    forks: bool = False


@dataclass(frozen=True, slots=True)
class Function:
    """The definition of a function."""

    name: str
    body: Command


@dataclass(frozen=True, slots=True)
class Condition:
    """`[[ … ]]`: words, and operators as bare texts."""

    line: int
    terms: tuple[Word | str, ...]


@dataclass(frozen=True, slots=True)
class Calculation:
    """`(( … ))`."""

    line: int
    expression: Word


@dataclass(frozen=True, slots=True)
class Redirected:
    """A compound command with redirections."""

    command: Command
    redirects: tuple[Redirect, ...]


Command = Simple | If | Loop | For | Case | Group | Function | Condition | Calculation | Redirected
Block = tuple[AndOr, ...]

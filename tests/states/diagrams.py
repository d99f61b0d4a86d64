"""State diagrams of a roll, a scale-in and a failover for docs/states.md, drawn from what the decisions do."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from member.outcome import Wait
from tests.states.worlds import Failover, Roll, ScaleIn, World

DOCUMENT = Path(__file__).parents[2] / "docs" / "states.md"

_MARK = "<!-- python -m tests.states writes what follows -->\n"

DIAGRAMS: Sequence[tuple[str, Sequence[World]]] = (
    ("A rolling restart", (Roll(),)),
    ("The removal of a TiKV store in a scale-in", (ScaleIn(), ScaleIn(wanted=4, up=4))),
    ("The failover of a PD member", (Failover(0), Failover(1), Failover(3), Failover(3, size=5))),
)


def edges(starts: Iterable[World]) -> set[tuple[str, str]]:
    """The steps that follow each other in all worlds that can be reached; `[*]` is the begin and the end."""
    found, todo = set[tuple[str, str]](), list(starts)
    found |= {("[*]", node(each)) for each in todo}
    seen = set(todo)
    while todo:
        world = todo.pop()
        for following in () if world.is_over else world.successors():
            found.add((node(world), node(following)))
            if following not in seen:
                seen.add(following)
                todo.append(following)
    return {(one, other) for one, other in found if one != other}


def node(world: World) -> str:
    """The name of the step in a world."""
    if world.is_over:
        return "[*]"
    step = world.step()
    return _waiting(step.what) if isinstance(step, Wait) else type(step).__name__


def _waiting(what: str) -> str:
    """The name of a wait, in one word: its message without the names of pods and stores."""
    said = _without_names(what).removeprefix("Wait").partition(" before ")[0].removeprefix(":").partition(":")[0]
    words = [word for word in said.split() if word not in ("the", "is", "of", "pod", "store")]
    return "Wait" + "".join(word[0].upper() + word[1:] for word in words)


def _without_names(what: str) -> str:
    """The message of a wait without the names of pods and stores."""
    general = re.sub(r"\b(pod|store) \S+?(?=[ :]|$)", r"the \1", what).removeprefix("waiting ")
    return f"Wait {general}" if general.startswith("until") else f"Wait: {general}"


def meanings(starts: Iterable[World]) -> dict[str, str]:
    """What each step means: the first sentence about its class, or the message of a wait."""
    found, todo = dict[str, str](), list(starts)
    seen = set(todo)
    while todo:
        world = todo.pop()
        step = world.step()
        said = _without_names(step.what) if isinstance(step, Wait) else str(type(step).__doc__)
        found.setdefault(node(world), said.partition(";")[0].partition(". ")[0].rstrip("."))
        new = [each for each in (() if world.is_over else world.successors()) if each not in seen]
        seen.update(new)
        todo += new
    return {name: text for name, text in found.items() if name != "[*]"}


def diagram(starts: Sequence[World]) -> str:
    """A Mermaid diagram."""
    lines = ["```mermaid", "stateDiagram-v2"]
    lines += [f"    {name} : {name}<br>{text}" for name, text in sorted(meanings(starts).items())]
    lines += [f"    {one} --> {other}" for one, other in sorted(edges(starts))]
    return "\n".join([*lines, "```"])


def rendered() -> str:
    """All diagrams, as they are in the document."""
    return "\n\n".join(f"## {title}\n\n{diagram(starts)}" for title, starts in DIAGRAMS)


def with_diagrams(text: str) -> str:
    """The document with the present diagrams."""
    return f"{text.partition(_MARK)[0]}{_MARK}\n{rendered()}\n"

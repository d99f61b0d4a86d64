"""The part of Kubernetes' JSONPath that printer columns use.

`.a.b`, `['a']`, `[0]`, `[-1]`, `[1:3]`, `[*]`, `.*` and filters such as `[?(@.type=="Ready")]`.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

_Step = Callable[[Any], Iterable[Any]]

_TOKEN = re.compile(
    r"""
      \.(?P<name>(?:[\w-]|\\.)+)
    | (?P<every>\.\*|\[\*\])
    | \[['"](?P<quoted>[^'"]+)['"]\]
    | \[(?P<index>-?\d+)\]
    | \[(?P<start>-?\d*):(?P<stop>-?\d*)\]
    | \[\?\(\s*@(?P<path>[^=!<>\s]*)\s*(?:(?P<op>==|!=|<=|>=|<|>)\s*(?P<value>[^)]+?)\s*)?\)\]
    """,
    re.VERBOSE,
)


class BadPath(ValueError):
    """Raised for an unsupported path; the message quotes it."""


def find(path: str, tree: Any) -> list[Any]:
    """All values at the path, possibly none. Raises BadPath."""
    values = [tree]
    for step in _steps(path):
        values = [found for value in values for found in step(value)]
    return values


@lru_cache(maxsize=512)
def _steps(path: str) -> tuple[_Step, ...]:
    text = path.strip().removeprefix("{").removesuffix("}")
    text = text if text.startswith((".", "[")) else f".{text}"
    steps, position = [], 0
    while position < len(text) and text != ".":
        token = _TOKEN.match(text, position)
        if not token:
            raise BadPath(f"{path}: unexpected {text[position:]!r}")
        steps.append(_step(token))
        position = token.end()
    return tuple(steps)


def _step(token: re.Match[str]) -> _Step:
    if name := token["name"] or token["quoted"]:
        return _named(re.sub(r"\\(.)", r"\1", name) if token["name"] else name)
    if token["every"]:
        return _children
    if token["index"]:
        return _indexed(int(token["index"]))
    if token["path"] is not None:
        return _filtered(token["path"], token["op"], token["value"])
    return _sliced(token["start"], token["stop"])


def _named(name: str) -> _Step:
    return lambda value: [value[name]] if isinstance(value, dict) and name in value else []


def _children(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _indexed(index: int) -> _Step:
    return lambda value: [value[index]] if isinstance(value, list) and -len(value) <= index < len(value) else []


def _sliced(start: str, stop: str) -> _Step:
    chosen = slice(int(start) if start else None, int(stop) if stop else None)
    return lambda value: value[chosen] if isinstance(value, list) else []


def _filtered(path: str, operator: str | None, literal: str | None) -> _Step:
    def step(value: Any) -> Iterator[Any]:
        for item in _children(value):
            found = find(path, item) if path else [item]
            if found and (operator is None or _compare(found[0], operator, _literal(literal or ""))):
                yield item

    return step


def _literal(text: str) -> Any:
    if text[:1] in ("'", '"'):
        return text[1:-1]
    if text in ("true", "false"):
        return text == "true"
    try:
        return float(text)
    except ValueError:
        return text


def _compare(left: Any, operator: str, right: Any) -> bool:
    if operator == "==":
        return bool(left == right)
    if operator == "!=":
        return bool(left != right)
    if type(left) is not type(right) and not (isinstance(left, int) and isinstance(right, float)):
        return False
    outcomes: dict[str, bool] = {"<": left < right, ">": left > right, "<=": left <= right, ">=": left >= right}
    return outcomes[operator]

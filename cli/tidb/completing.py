"""Completions of a command line of the plugin, from its parser and the API server."""

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from apis.accessor import workloads
from cli.failures import Failure
from cli.tidb.clusters import clusters_of, find_cluster
from cli.tidb.pods import list_pods
from cli.tidb.session import Session
from kube.errors import ApiError
from kube.resources import NAMESPACES, NODES
from ports.transport import TransportError

FILES = "files"
"""Stands for file names, which the shell completes better."""


@dataclass(frozen=True, slots=True)
class Line:
    """A command line up to the current word, the last of `words`, which may be empty."""

    words: Sequence[str]
    parser: argparse.ArgumentParser

    @property
    def current(self) -> str:
        """The current word."""
        return self.words[-1] if self.words else ""


def completions(line: Line, open_session: Callable[[argparse.Namespace], Session]) -> list[str]:
    """The possible completions of the current word; `[FILES]` for a file; empty if unknown.

    `open_session` is called with the given shared flags if the API server is needed.
    """
    parser, given, values = _read(line)
    before = line.words[-2] if len(line.words) > 1 else ""
    flag = _flags(parser).get(before)
    if flag is not None and flag.nargs != 0:
        found = _values(flag, given, values, open_session)
    elif line.current.startswith("-"):
        found = sorted(each for each in _flags(parser) if each.startswith("--"))
    else:
        place = _positional(parser, len(values))
        found = _values(place, given, values, open_session) if place else []
    return [FILES] if FILES in found else sorted({each for each in found if each.startswith(line.current)})


def _read(line: Line) -> tuple[argparse.ArgumentParser, argparse.Namespace, list[str]]:
    """The parser of the given command, the shared flags, and the arguments without the current word."""
    parser, given, values = line.parser, dict.fromkeys(("namespace", "context", "kubeconfig"), ""), list[str]()
    words = iter(line.words[:-1])
    for word in words:
        name, has_value, value = word.partition("=")
        if (flag := _flags(parser).get(name)) is not None:
            if flag.nargs != 0:
                given[flag.dest] = value if has_value else next(words, "")
        elif (commands := _commands(parser)) and word in commands:
            parser = commands[word]
        else:
            values.append(word)
    return parser, argparse.Namespace(**given), values


# argparse has no public way to list a parser's arguments


def _flags(parser: argparse.ArgumentParser) -> Mapping[str, argparse.Action]:
    return parser._option_string_actions


def _commands(parser: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    found = (action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return next(found, {})


def _positional(parser: argparse.ArgumentParser, at: int) -> argparse.Action | None:
    """The argument at a position; the last one if it may repeat."""
    places = [action for action in parser._actions if not action.option_strings]
    if at < len(places):
        return places[at]
    return places[-1] if places and places[-1].nargs in ("*", "+") else None


def _values(
    action: argparse.Action,
    given: argparse.Namespace,
    values: Sequence[str],
    open_session: Callable[[argparse.Namespace], Session],
) -> Iterable[str]:
    """The possible values of an argument or flag."""
    if action.choices is not None:
        return list(action.choices)
    look = _LOOKS.get(action.dest)
    if look is None:
        return [FILES] if action.metavar in ("FILE", "DIR") else []
    try:
        return list(look(open_session(given), values))
    except (Failure, ApiError, TransportError, OSError):
        return []


def _clusters(session: Session, typed: Sequence[str]) -> Iterable[str]:
    names = (each.metadata.name for _, each in clusters_of(session.client, session.namespace))
    return [name for name in names if name not in typed]


def _parts(session: Session, typed: Sequence[str]) -> Iterable[str]:
    found = find_cluster(session.client, session.namespace, typed[0])
    components = [workload.name for workload in workloads(found.cluster)]
    return [*components, *(pod.name for pod in list_pods(session.client, found.cluster))]


def _nodes(session: Session, _: Sequence[str]) -> Iterable[str]:
    return [item.metadata.name for item in session.client.list_page(NODES).items]


def _namespaces(session: Session, _: Sequence[str]) -> Iterable[str]:
    return [item.metadata.name for item in session.client.list_page(NAMESPACES).items]


def _contexts(session: Session, _: Sequence[str]) -> Iterable[str]:
    return session.server.contexts


_LOOKS: Mapping[str, Callable[[Session, Sequence[str]], Iterable[str]]] = {
    "cluster": _clusters,
    "clusters": _clusters,
    "what": _parts,
    "node": _nodes,
    "namespace": _namespaces,
    "context": _contexts,
}
"""The sources of values, by the argument's name in the parser."""

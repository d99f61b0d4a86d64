"""The operator's objects as programs read them: each text is parsed as its reader parses it. Two specs that differ in
one text must give parsed objects that differ in that text only: then it is always a value, whatever it contains."""

import ast
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, unquote

import yaml

from kube.objects import Json
from tests.security.shell_texts import Room, runs_shell, syntax_error, words_of

_FORGOTTEN = frozenset(
    {"uid", "resourceVersion", "creationTimestamp", "managedFields", "status", "ownerReferences", "controller-uid"}
    | {"batch.kubernetes.io/controller-uid", "image"}
)
"""Values that differ from run to run, and images, whose parts `apis.images` reads."""
_DIGEST = re.compile(r"(?<=-)[0-9]{7}\b")
"""Ends the name of a ConfigMap, which depends on its text."""
_URL = re.compile(
    r"(?P<flag>(?:--?[\w.-]+=)?)(?P<scheme>[a-z][a-z0-9+]*)://(?P<host>[^/?#]*)(?P<path>[^?#]*)"
    r"(?:\?(?P<query>[^#]*))?(?:#(?P<fragment>.*))?",
    re.DOTALL,
)
"""RFC 3986, appendix B, perhaps as the value of an option. `urlsplit` would leave out the ends of lines."""


class Parser:
    """Parses objects; their shell texts run in a room, in a shell."""

    def __init__(self, room: Room, shell: str) -> None:
        self._room = room
        self.shell = shell
        self._effects: dict[tuple[str, tuple[tuple[str, str], ...]], Any] = {}

    def parsed(self, tree: object) -> Any:
        """A tree with its texts parsed as programs parse them."""
        if isinstance(tree, dict):
            words = words_of(tree)
            if runs_shell(words):
                rest = {key: value for key, value in tree.items() if key not in ("command", "args")}
                variables = _variables(tree)
                return {"runs": self._run(substituted(words[2], variables), variables), **self.parsed(rest)}
            return {self._text(key): self._entry(key, value) for key, value in tree.items() if key not in _FORGOTTEN}
        if isinstance(tree, list | tuple):
            return [self.parsed(each) for each in tree]
        return self._text(tree) if isinstance(tree, str) else tree

    def _entry(self, key: str, value: object) -> Any:  # noqa: PLR0911  (one line per language)
        if key == "env" and isinstance(value, list) and all("name" in each for each in value):
            # variables are in the order of their names, which may be the text; a record of a spec may lack names
            return {self._text(each["name"]): self.parsed(each) for each in value}
        if not isinstance(value, str):
            return self.parsed(value)
        if value.startswith(("#!/bin/sh", "#!/bin/bash")):
            return self._run(value, {})
        if value.startswith("#!/usr/bin/env python"):
            return _program(value)
        if key.endswith((".yml", ".yaml")):
            return self.parsed(yaml.safe_load(value))
        if key.endswith((".toml", "-config", "config-file")) or key in ("configuration", "config_templ", "proxy_templ"):
            return self.parsed(tomllib.loads(value))
        if value.startswith(("{", "[")) and (document := _json(value)) is not None:
            return self.parsed(document)
        return self._text(value)

    def _run(self, script: str, variables: Mapping[str, str]) -> Any:
        """What a script calls, or its syntax error. A script runs once, because most objects repeat most scripts."""
        key = script, tuple(sorted(variables.items()))
        if key not in self._effects:
            self._effects[key] = self._effect(script, variables)
        return self._effects[key]

    def _effect(self, script: str, variables: Mapping[str, str]) -> Any:
        if wrong := syntax_error(script, self.shell):
            return wrong
        calls = self._room.run(script, self.shell, variables).calls
        return [[self._text(word) for word in call] for call in calls if call[0] != "sleep"]

    @staticmethod
    def _text(text: str) -> Any:
        found = _URL.fullmatch(text)
        if found is None:
            return _DIGEST.sub("DIGEST", text)
        query = [list(pair) for pair in parse_qsl(found["query"] or "", keep_blank_values=True)]
        return {
            "flag": found["flag"],
            "url": [found["scheme"], found["host"], unquote(found["path"]), query, found["fragment"]],
        }


def substituted(text: str, variables: Mapping[str, str]) -> str:
    """A word of a container's command as the kubelet passes it: `$(NAME)` is replaced, and `$$` becomes `$`."""
    return _REFERENCE.sub(lambda found: "$" if found[0] == "$$" else variables.get(found[1], found[0]), text)


_REFERENCE = re.compile(r"\$\$|\$\(([^)]*)\)")


def _variables(container: Mapping[str, Any]) -> dict[str, str]:
    return {each["name"]: str(each.get("value", f"of-{each['name']}")) for each in container.get("env") or ()}


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _program(text: str) -> Any:
    """The literal arguments of the call with which a generated program ends, and how many statements it has."""
    tree = ast.parse(text)
    *_, last = tree.body
    calls = (node for node in ast.walk(last) if isinstance(node, ast.Call))
    call = next(each for each in calls if isinstance(each.func, ast.Name) and each.func.id == "Settings")
    return [len(tree.body), {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}]


def replaced(tree: Any, text: str, other: str) -> Any:
    """A parsed tree in which a text is another, wherever it stands."""
    if isinstance(tree, str):
        return tree.replace(text, other)
    if isinstance(tree, dict):
        return {replaced(key, text, other): replaced(value, text, other) for key, value in tree.items()}
    return [replaced(each, text, other) for each in tree] if isinstance(tree, list) else tree


def texts(tree: object) -> list[str]:
    """All texts of a tree, keys included."""
    if isinstance(tree, str):
        return [tree]
    if isinstance(tree, dict):
        return [text for key, value in tree.items() for text in (key, *texts(value))]
    return [text for each in tree for text in texts(each)] if isinstance(tree, list | tuple) else []


def has_built(trees: Sequence[Json], mark: str, value: str) -> bool:
    """True if a text that the operator has composed contains the mark, rather than equalling the value."""
    return any(mark in text and text != value for text in texts(trees))

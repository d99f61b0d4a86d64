"""What a component's pods run: one value a component, in the module of its process."""

import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from sandbox.dataplane.dependencies import Dependencies
from sandbox.dataplane.listening import Setting, configuration, configuration_file
from sandbox.dataplane.pd.durations import seconds
from sandbox.dataplane.processes import Launch, Process

_LEVELS = ("debug", "info", "warn", "warning", "error", "fatal", "critical", "trace", "off", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerProgram:
    """The server of one component.

    `name` is the component, `executable` its file where that is named otherwise; `start` makes a process. `tables`,
    `numbers` and `durations` are dotted paths of its configuration, to which `further_files` add those that a setting
    names: it refuses to start when they hold anything else. Of what it does not know it only warns, as the real one
    does. `certificates` are the paths of its configuration that name the files of a certificate, `urls` the settings
    whose values need one when they say https.
    """

    name: str
    executable: str = ""
    further_files: tuple[Setting, ...] = ()
    start: Callable[[Launch, Dependencies], Process]
    tables: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    durations: tuple[str, ...] = ()
    certificates: tuple[str, ...] = ()
    urls: tuple[Setting, ...] = ()

    @property
    def command(self) -> str:
        """The file name of the program."""
        return self.executable or f"{self.name}-server"

    def refusal(self, launch: Launch) -> str:
        """What it says before it exits with code 1; empty when it starts."""
        file = configuration_file(launch)
        if file and launch.file(file) is None:
            return f"open {file}: no such file or directory"
        try:
            trees = [tomllib.loads(configuration(launch))]
            trees += [tomllib.loads(_text(launch, setting.of(launch))) for setting in self.further_files]
            for tree in trees:
                self._check(tree)
        except FileNotFoundError as error:
            return f"open {error}: no such file or directory"
        except ValueError as error:
            return f"invalid configuration file: {error}"
        named = {path: value for tree in trees for path, value in _given(tree, self.certificates)}
        return self._missing_certificate(launch, named)

    def _check(self, tree: Mapping[str, object]) -> None:
        """Raises ValueError where the real server would refuse."""
        for path, value in _given(tree, self.tables):
            if not isinstance(value, dict):
                raise ValueError(f"invalid type for key {path!r}: expected a table")
        for path, value in _given(tree, self.numbers):
            if isinstance(value, bool) or not isinstance(value, int):
                raise ValueError(f"invalid type for key {path!r}: expected an integer, not {value!r}")
        for _, value in _given(tree, self.durations):
            seconds(str(value))
        for _, level in _given(tree, ("log.level",)):
            if not isinstance(level, str) or level.lower() not in _LEVELS:
                raise ValueError(f"unknown log level {level!r}")

    def _missing_certificate(self, launch: Launch, named: Mapping[str, object]) -> str:
        """Files that the configuration names must be there, each of them PEM; https needs all of them."""
        for url in (setting.of(launch) for setting in self.urls):
            if url.startswith("https://") and len(named) < len(self.certificates):
                return f"TLS key/cert must be provided for client url {url}"
        for path in filter(None, map(str, named.values())):
            text = launch.file(path)
            if text is None:
                return f"open {path}: no such file or directory"
            if "-----BEGIN" not in text:
                return f"{path}: tls: failed to find any PEM data in certificate input"
        return ""


def _text(launch: Launch, path: str) -> str:
    text = launch.file(path)
    if text is None:
        raise FileNotFoundError(path)
    return text


def _given(tree: Mapping[str, object], paths: tuple[str, ...]) -> Iterator[tuple[str, object]]:
    """Those of the paths that the configuration sets, with their values."""
    for path in paths:
        value: object = tree
        for step in path.split("."):
            value = value.get(step) if isinstance(value, dict) else None
        if value is not None:
            yield path, value

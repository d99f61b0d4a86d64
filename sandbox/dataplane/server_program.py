"""What a component's pods run: one value a component, in the module of its process."""

import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from sandbox.dataplane.addresses import speaks_tls
from sandbox.dataplane.dependencies import Dependencies
from sandbox.dataplane.pd.durations import seconds
from sandbox.dataplane.processes import Launch, Process

_LEVELS = ("debug", "info", "warn", "warning", "error", "fatal", "critical", "trace", "off", "")
_CERTIFICATE_FILES = ("ca.crt", "tls.crt", "tls.key")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerProgram:
    """The server of one component.

    `name` is the component; `start` makes a process. `tables`, `numbers` and `durations` are dotted paths of its
    configuration: it refuses to start when they hold anything else. Of what it does not know it only warns, as the real
    one does.
    """

    name: str
    start: Callable[[Launch, Dependencies], Process]
    tables: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    durations: tuple[str, ...] = ()

    @property
    def commands(self) -> tuple[str, ...]:
        """The file names by which a container starts it: its start script, or the program itself."""
        return f"{self.name}_start_script.sh", f"{self.name}-server"

    def refusal(self, launch: Launch) -> str:
        """What it says before it exits with code 1; empty when it starts."""
        try:
            self._check(launch.files.get(f"/etc/{self.name}/{self.name}.toml", ""))
        except ValueError as error:
            return f"invalid configuration file: {error}"
        return self._missing_certificate(launch)

    def _check(self, text: str) -> None:
        """Raises ValueError where the real server would refuse."""
        tree = tomllib.loads(text)
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

    def _missing_certificate(self, launch: Launch) -> str:
        """A server that speaks TLS needs all three files, each of them PEM."""
        if not speaks_tls(launch):
            return ""
        for name in _CERTIFICATE_FILES:
            path = f"/var/lib/{self.name}-tls/{name}"
            if path not in launch.files:
                return f"open {path}: no such file or directory"
            if "-----BEGIN" not in launch.files[path]:
                return f"{path}: tls: failed to find any PEM data in certificate input"
        return ""


def _given(tree: Mapping[str, object], paths: tuple[str, ...]) -> Iterator[tuple[str, object]]:
    """Those of the paths that the configuration sets, with their values."""
    for path in paths:
        value: object = tree
        for step in path.split("."):
            value = value.get(step) if isinstance(value, dict) else None
        if value is not None:
            yield path, value

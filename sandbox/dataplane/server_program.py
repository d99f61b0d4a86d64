"""The programs in a component's pods: one value per component, in the module of its process."""

import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from ports import duration
from sandbox.dataplane.dependencies import Dependencies
from sandbox.dataplane.listening import Setting, configuration, configuration_file
from sandbox.dataplane.processes import Launch, Process, TlsSettings
from sandbox.dataplane.tls import unusable

_PARTS = ("CA", "certificate", "key")
_LEVELS = ("debug", "info", "warn", "warning", "error", "fatal", "critical", "trace", "off", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerProgram:
    """The server of one component.

    `name` is the component, `file` its program unless that is `<name>-server`, `image` its image unless that has its
    name; `start` creates a process. `tables`, `numbers` and `durations` are dotted paths of its configuration, to which
    `further_files` adds files that a setting names: the server refuses to start if they have another type, but only
    warns about unknown paths, like the real one.

    `certificates` are the paths of its configuration for the files of CA, certificate and key. With all three, its
    ports speak TLS or, with `urls`, those with https URLs; of several certificates, those that `identity` names, in the
    same order. It requires client certificates if `demands` is set or `allowed_names`, also a path, restricts their
    names. `help` is its output for `--help`.
    """

    name: str
    further_files: tuple[Setting, ...] = ()
    start: Callable[[Launch, Dependencies], Process]
    file: str = ""
    image: str = ""
    tables: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    durations: tuple[str, ...] = ()
    certificates: tuple[str, ...] = ()
    urls: tuple[Setting, ...] = ()
    demands: bool = True
    allowed_names: str = ""
    identity: tuple[Setting, ...] = ()
    help: str = ""

    @property
    def command(self) -> str:
        """The file name of the program."""
        return self.file or f"{self.name}-server"

    def refusal(self, launch: Launch) -> str:
        """Its message before it exits with code 1; empty if it starts."""
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
        shown = ((each.flag or each.path, each.of(launch)) for each in self.identity)
        given = {path: value for tree in trees for path, value in _given(tree, self.certificates)}
        return self._missing_certificate(launch, {**given, **dict(shown)})

    def tls(self, launch: Launch) -> TlsSettings | None:
        """Its TLS; None if it has none, or does not start."""
        try:
            tree = tomllib.loads(configuration(launch))
        except ValueError:
            return None
        named = [setting.of(launch) for setting in self.identity]
        files = [each for each in named or (str(value) for _, value in _given(tree, self.certificates)) if each]
        if len(files) != len(_PARTS):
            return None
        ca, cert, key = files
        names = tuple(text for _, value in _given(tree, (self.allowed_names,)) for text in _texts(value))
        urls = [each for setting in self.urls for each in setting.of(launch).split(",")]
        speaking = frozenset(urlsplit(url).port or 443 for url in urls if url.startswith("https://"))
        demands = self.demands or bool(names)
        return TlsSettings(launch.file(ca) or "", cert, key, speaking if self.urls else None, demands, names)

    def _check(self, tree: Mapping[str, object]) -> None:
        """Raises ValueError if the real server would refuse."""
        for path, value in _given(tree, self.tables):
            if not isinstance(value, dict):
                raise ValueError(f"invalid type for key {path!r}: expected a table")
        for path, value in _given(tree, self.numbers):
            if isinstance(value, bool) or not isinstance(value, int):
                raise ValueError(f"invalid type for key {path!r}: expected an integer, not {value!r}")
        for _, value in _given(tree, self.durations):
            duration.nanoseconds(str(value))
        for _, level in _given(tree, ("log.level",)):
            if not isinstance(level, str) or level.lower() not in _LEVELS:
                raise ValueError(f"unknown log level {level!r}")

    def _missing_certificate(self, launch: Launch, named: Mapping[str, object]) -> str:
        """The error if a certificate file of configuration or flags is missing or not PEM; https needs all of them."""
        for url in (setting.of(launch) for setting in self.urls):
            if url.startswith("https://") and len(named) < len(self.certificates):
                return f"TLS key/cert must be provided for client url {url}"
        for path in filter(None, map(str, named.values())):
            text = launch.file(path)
            if text is None:
                return f"open {path}: no such file or directory"
            if "-----BEGIN" not in text:
                return f"{path}: tls: failed to find any PEM data in certificate input"
        settings = self.tls(launch)
        certificate = replace(launch, tls=settings).certificate
        trouble = unusable(certificate) if certificate else ""
        return f"could not load key pair of {', '.join(map(str, named.values()))}: {trouble}" if trouble else ""


def _texts(value: object) -> tuple[str, ...]:
    """A list of names, which may be one text."""
    return tuple(map(str, value)) if isinstance(value, list) else (str(value),) if value else ()


def _text(launch: Launch, path: str) -> str:
    text = launch.file(path)
    if text is None:
        raise FileNotFoundError(path)
    return text


def _given(tree: Mapping[str, object], paths: tuple[str, ...]) -> Iterator[tuple[str, object]]:
    """The paths that the configuration sets, with their values."""
    for path in paths:
        value: object = tree
        for step in path.split("."):
            value = value.get(step) if isinstance(value, dict) else None
        if value is not None:
            yield path, value

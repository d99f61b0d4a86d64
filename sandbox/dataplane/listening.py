"""The settings of a server, including its addresses: from flags, else from its configuration, else the default."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit

from sandbox.dataplane.processes import Launch

_EVERYWHERE = ("", "0.0.0.0", "::", "*")


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of a server: its flag, its path in the configuration, and its default."""

    flag: str
    path: str = ""
    default: str = ""

    def of(self, launch: Launch, file: str | None = None) -> str:
        """Its value as text; `file` replaces the configuration that the command line names."""
        given = _flags(launch.command, self.flag)
        if given:
            return given[-1]
        if not self.path:
            return self.default
        tree = tomllib.loads(configuration(launch) if file is None else file)
        return next(_values(tree, self.path.split(".")), self.default)


def configuration(launch: Launch, file: str = "") -> str:
    """The text of a file, by default the one in `--config`; empty if it does not exist."""
    return launch.file(file or configuration_file(launch)) or ""


def configuration_file(launch: Launch) -> str:
    """The path in `--config` (TiFlash: `--config-file`); empty without the flag."""
    return next(filter(None, (flag.of(launch) for flag in _CONFIG)), "")


_CONFIG = (Setting("config"), Setting("config-file"))


@lru_cache(maxsize=10_000)
def _flags(command: tuple[str, ...], name: str) -> Sequence[str]:
    """The values of a flag in the arguments: `--name=value`, `--name value`, with one dash or two."""
    found = []
    for place, word in enumerate(command):
        flag, given, value = word.partition("=")
        if not flag.startswith("-") or flag.lstrip("-") != name:
            continue
        if given:
            found.append(value)
        elif place + 1 < len(command):
            found.append(command[place + 1])
    return found


def ports(launch: Launch, settings: tuple[Setting, ...], file: str | None = None) -> frozenset[int]:
    """The ports in addresses and URLs on which other pods can reach a server; `file` as for a setting."""
    addresses = (setting.of(launch, file) for setting in settings)
    return frozenset(port for each in addresses for address in each.split(",") if (port := reachable_port(address)))


def reachable_port(address: str) -> int | None:
    """The port of an address or URL; None if it is bound to one address only, e.g. the loopback."""
    parts = urlsplit(address if "://" in address else f"//{address}")
    try:
        return parts.port if (parts.hostname or "") in _EVERYWHERE else None
    except ValueError:
        return None


def _values(tree: Mapping[str, object], path: list[str]) -> Iterator[str]:
    """The values at a path; Go's decoder ignores the case of keys."""
    for key, value in tree.items():
        if key.lower() != path[0]:
            continue
        if len(path) > 1 and isinstance(value, dict):
            yield from _values(value, path[1:])
        elif len(path) == 1:
            yield str(value).lower() if isinstance(value, bool) else str(value)

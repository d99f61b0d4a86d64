"""The settings of a server, and where it listens: as its flags say, else its configuration, else by default."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from sandbox.dataplane.processes import Launch

_EVERYWHERE = ("", "0.0.0.0", "::", "*")


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of a server: its flag, its path in the configuration, and what it is by default."""

    flag: str
    path: str = ""
    default: str = ""

    def of(self, launch: Launch, file: str | None = None) -> str:
        """Its value as text; `file` is the configuration to read in place of the one that the command line names."""
        given = list(_flags(launch.command, self.flag))
        if given:
            return given[-1]
        if not self.path:
            return self.default
        tree = tomllib.loads(configuration(launch) if file is None else file)
        return next(_values(tree, self.path.split(".")), self.default)


def configuration(launch: Launch, file: str = "") -> str:
    """The text of a file, by default of the one that `--config` names; empty when it is not there."""
    return launch.file(file or configuration_file(launch)) or ""


def configuration_file(launch: Launch) -> str:
    """The path that `--config` names, as TiFlash calls it `--config-file`; empty when the flag is not given."""
    return next(filter(None, (flag.of(launch) for flag in _CONFIG)), "")


_CONFIG = (Setting("config"), Setting("config-file"))


def _flags(command: tuple[str, ...], name: str) -> Iterator[str]:
    """The values of a flag among the arguments: `--name=value`, `--name value`, with one dash or two."""
    for place, word in enumerate(command):
        flag, given, value = word.partition("=")
        if not flag.startswith("-") or flag.lstrip("-") != name:
            continue
        if given:
            yield value
        elif place + 1 < len(command):
            yield command[place + 1]


def ports(launch: Launch, settings: tuple[Setting, ...], file: str | None = None) -> frozenset[int]:
    """The ports of addresses and URLs on which a server can be reached from other pods; `file` as for a setting."""
    addresses = (setting.of(launch, file) for setting in settings)
    return frozenset(port for each in addresses for address in each.split(",") if (port := reachable_port(address)))


def reachable_port(address: str) -> int | None:
    """The port of an address or URL, None when it is bound to one address alone, such as that of the loopback."""
    parts = urlsplit(address if "://" in address else f"//{address}")
    try:
        return parts.port if (parts.hostname or "") in _EVERYWHERE else None
    except ValueError:
        return None


def _values(tree: Mapping[str, object], path: list[str]) -> Iterator[str]:
    """What stands at a path; Go's decoder takes keys in any case."""
    for key, value in tree.items():
        if key.lower() != path[0]:
            continue
        if len(path) > 1 and isinstance(value, dict):
            yield from _values(value, path[1:])
        elif len(path) == 1:
            yield str(value).lower() if isinstance(value, bool) else str(value)

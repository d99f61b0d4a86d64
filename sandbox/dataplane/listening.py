"""Where a server listens: as its start script says by a flag, else as its configuration does, else by default.

A flag whose value the script works out stands for the default.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from sandbox.dataplane.addresses import scripts
from sandbox.dataplane.processes import Launch

_EVERYWHERE = ("", "0.0.0.0", "::", "*")
_COMMENT = re.compile(r"^\s*#.*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of a server: its flag, its path in the configuration, and what it is by default."""

    flag: str
    path: str
    default: str

    def of(self, launch: Launch, component: str) -> str:
        """Its value as text."""
        flag = re.compile(rf"""(?<![\w-])--?{re.escape(self.flag)}(?:=|["']*\s+)["']?([^\s"']+)""")
        given = [value for text in scripts(launch) for value in flag.findall(_COMMENT.sub("", text))]
        if given:
            return self.default if "$" in given[-1] else given[-1]
        text = launch.files.get(f"/etc/{component}/{component}.toml", "")
        return next(_values(tomllib.loads(text), self.path.split(".")), self.default)


def ports(launch: Launch, component: str, settings: tuple[Setting, ...]) -> frozenset[int]:
    """The ports of addresses and URLs on which a server can be reached from other pods."""
    addresses = (setting.of(launch, component) for setting in settings)
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

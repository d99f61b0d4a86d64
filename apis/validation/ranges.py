"""Address ranges of load balancers (defaults-and-validation.md 3)."""

import ipaddress
from collections.abc import Iterator, Sequence

from apis.problem import Problem


def check(ranges: Sequence[str], field: str) -> Iterator[Problem]:
    """The entries that are no address ranges."""
    for index, entry in enumerate(ranges):
        if not _is_range(entry.strip()):
            yield Problem(f"{field}[{index}]", entry, "must be an address range such as 10.0.0.0/8")


def _is_range(entry: str) -> bool:
    address, slash, prefix = entry.partition("/")
    try:
        ipaddress.ip_network(f"{address}/{int(prefix)}", strict=False)
    except ValueError:
        return False
    return bool(slash)

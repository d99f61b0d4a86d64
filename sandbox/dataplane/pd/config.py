"""The part of PD's configuration that the cluster shares (dataplane-apis.md 3.3 get_config).

It is read from pd.toml once, at the bootstrap; afterwards only PD's API changes it.
"""

import tomllib
from collections.abc import Iterable, Mapping

import msgspec

from kube.objects import Json
from ports.duration import seconds

_DEFAULTS = b"""{
 "schedule": {"max-snapshot-count": 64, "max-pending-peer-count": 64, "max-merge-region-size": 54,
  "max-store-down-time": "30m0s", "leader-schedule-limit": 4, "region-schedule-limit": 2048,
  "replica-schedule-limit": 64, "merge-schedule-limit": 8, "hot-region-schedule-limit": 4, "low-space-ratio": 0.8,
  "high-space-ratio": 0.7, "tolerant-size-ratio": 0,
  "schedulers-v2": [{"type": "balance-region", "args": null, "disable": false}]},
 "replication": {"max-replicas": 3, "location-labels": "", "strictly-match-label": "false",
  "enable-placement-rules": "true", "enable-placement-rules-cache": "false", "isolation-level": ""}}"""

_LEASE = 5


class Config:
    """`schedule` and `replication` as PD's API shows them: booleans of `replication` are texts."""

    def __init__(self, toml: str = "") -> None:
        """The defaults, overridden by a pd.toml. Raises tomllib.TOMLDecodeError, ValueError."""
        self.sections: dict[str, Json] = msgspec.json.decode(_DEFAULTS)
        given = tomllib.loads(toml)
        for section in self.sections:
            self._merge(section, given.get(section, {}))
        _ = self.max_replicas

    @property
    def max_replicas(self) -> int:
        """The number of peers of a region."""
        return int(self.sections["replication"]["max-replicas"])

    @property
    def location_labels(self) -> tuple[str, ...]:
        """The labels for the placement of regions, widest first."""
        return tuple(filter(None, self.sections["replication"]["location-labels"].split(",")))

    def refused_label(self, labels: Iterable[str]) -> str | None:
        """The first label of a store that PD rejects because strict matching requires other labels."""
        replication = self.sections["replication"]
        if replication["strictly-match-label"] != "true":
            return None
        return next((key for key in labels if key not in replication["location-labels"].split(",")), None)

    def update(self, items: Mapping[str, object]) -> None:
        """Set items by `section.key` or by key alone. Raises KeyError naming an unknown item, ValueError."""
        for name, value in items.items():
            section, _, key = name.rpartition(".")
            holder = next((each for each in self.sections if key in self.sections[each] and section in ("", each)), "")
            if not holder:
                raise KeyError(name)
            self._merge(holder, {key: value})

    def _merge(self, section: str, values: Mapping[str, object]) -> None:
        for key, value in values.items():
            self.sections[section][key] = _as_shown(value, self.sections[section].get(key))
        self.max_store_down_time = seconds(self.sections["schedule"]["max-store-down-time"])
        """Seconds of silence after which a store is Down."""


def lease(toml: str) -> int:
    """The seconds of a leader's lease by a member's pd.toml, which PD's API does not change."""
    try:
        return int(tomllib.loads(toml).get("lease", _LEASE))
    except ValueError:
        # a member that has joined is not checked
        return _LEASE


def _as_shown(value: object, before: object) -> object:
    if isinstance(value, list) and isinstance(before, str):
        return ",".join(str(each) for each in value)
    if isinstance(value, bool) and isinstance(before, str):
        return str(value).lower()
    if isinstance(before, int) and isinstance(value, str):
        return int(value)
    return value

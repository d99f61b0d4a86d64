"""The number of replicas of each region: by placement rules, else by max-replicas (dataplane-apis.md 3.2).

When a store is to be removed, PD counts stores by max-replicas regardless of rules: a store that rules need becomes
Offline and stays so.
"""

from collections.abc import Mapping

from kube.objects import Json
from sandbox.dataplane.pd.config import Config

_EVERYWHERE = {"start_key": "", "end_key": ""}
_DEFAULT = ("pd", "default")


class Placement:
    """The rules of one cluster. The default rule follows max-replicas until it is set."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._rules: dict[tuple[str, str], Json] = {}

    @property
    def is_enabled(self) -> bool:
        """True if rules decide."""
        return bool(self._config.sections["replication"]["enable-placement-rules"] == "true")

    @property
    def replicas(self) -> int:
        """The number of voters of a region; among rules for parts of the keys, only TiFlash's are modelled."""
        if not self.is_enabled:
            return self._config.max_replicas
        rules = [rule for rule in self.rules() if not rule["start_key"] and not rule["end_key"]]
        return sum(rule["count"] for rule in rules if rule["role"] != "learner")

    @property
    def of_tiflash(self) -> dict[str, int]:
        """The number of replicas of each TiFlash rule; empty while rules are disabled."""
        rules = self.rules("tiflash") if self.is_enabled else []
        return {rule["id"]: rule["count"] for rule in rules if rule["role"] == "learner"}

    def rules(self, group: str = "") -> list[Json]:
        """The rules of one group, or all."""
        default = self._rule({"group_id": _DEFAULT[0], "id": _DEFAULT[1], "count": self._config.max_replicas})
        found = {_DEFAULT: default} | self._rules
        return [rule for (owner, _), rule in sorted(found.items()) if group in ("", owner)]

    def set(self, rule: Mapping[str, object]) -> None:
        """Add a rule or replace it. Raises ValueError, TypeError."""
        full = self._rule(rule)
        if not isinstance(full["count"], int) or full["count"] <= 0:
            raise ValueError(f"invalid count {full['count']}")
        self._rules[full["group_id"], full["id"]] = full

    def remove(self, group: str, rule: str) -> None:
        """Remove a rule; the default rule is reset instead. Idempotent."""
        self._rules.pop((group, rule), None)

    def _rule(self, given: Mapping[str, object]) -> Json:
        return _EVERYWHERE | {"role": "voter", "is_witness": False} | dict(given)

"""Feature gates (scheduler-deployment.md 3.7)."""

from dataclasses import dataclass, replace

from controller_manager.go_values import parse_bool


@dataclass(frozen=True, slots=True)
class FeatureGates:
    """The enabled features."""

    stable_scheduling: bool = True
    advanced_stateful_set: bool = False
    volume_modifying: bool = False
    volume_replacing: bool = False


FEATURES = {
    "StableScheduling": "stable_scheduling",
    "AdvancedStatefulSet": "advanced_stateful_set",
    "VolumeModifying": "volume_modifying",
    "VolumeReplacing": "volume_replacing",
}
"""The fields of `FeatureGates` by the names of the features."""


def parse_features(text: str) -> FeatureGates:
    """Gates from `Name=bool,Name=bool`; others keep their default.

    Raises ValueError for an unknown name, or a missing or malformed value.
    """
    gates = FeatureGates()
    for pair in filter(None, (part.strip() for part in text.split(","))):
        name, separator, value = pair.partition("=")
        if name not in FEATURES:
            raise ValueError(f"unknown feature {name!r}; known are {', '.join(sorted(FEATURES))}")
        if not separator:
            raise ValueError(f"missing bool value for {name}; write {name}=true or {name}=false")
        gates = replace(gates, **{FEATURES[name]: parse_bool(value.strip())})
    return gates


def format_features(gates: FeatureGates) -> str:
    """The gates as a flag's value, all of them, sorted by name."""
    return ",".join(f"{name}={str(getattr(gates, field)).lower()}" for name, field in sorted(FEATURES.items()))

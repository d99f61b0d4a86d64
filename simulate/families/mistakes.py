"""Mistakes in a spec and their correction (reliability.md R22, R23): in each component, steady and rolling.

`mistake/tikv-no-image` makes one in steady state and corrects it half a minute later, `mistake/tikv-no-image@rolling`
in the middle of a rolling update.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kube.objects import Json
from simulate.engine.plan import Edit, InvalidPlan, Plan, World
from simulate.families.family import Family
from simulate.families.homes import SMALL, Home, all_components, home_of
from simulate.families.users_data import of_all_components

MISSING = "v0.0.0-missing"
"""A version that no registry has."""

NO_IMAGE = World(at=0.0, verb="image_missing", arguments={"image": f"*:{MISSING}"}, seconds=0.0)
"""The precondition of plans with that mistake."""

_NOWHERE = {"matchExpressions": [{"key": "no-such-label", "operator": "Exists"}]}
_NO_SECRET = {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "no-such-secret", "key": "password"}}}
_NO_CLASS = {"name": "more", "storageSize": "1Gi", "mountPath": "/more", "storageClassName": "no-such-class"}

_ROLLING = "rolling"
_HALFWAY = 5.0
"""Seconds after which a rolling update is in progress."""
_UNNOTICED = 30.0
"""Seconds until the user notices the mistake."""
_HEALED = 600.0
"""Seconds in which it must heal (R23)."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """`wrong` and `right` are merged into the component's spec, `whole` ones into the cluster's."""

    wrong: Json
    right: Json
    whole: bool = False

    def edits(self, home: Home, at: float, right_at: float) -> tuple[Edit, Edit]:
        """The mistake and its correction, which restores the component's section."""
        if self.whole:
            return Edit(at=at, spec=self.wrong), Edit(at=right_at, spec=self.right)
        had = home.section
        right = {key: had.get(key) if value is None else value for key, value in self.right.items()}
        return home.merge(at, self.wrong), home.merge(right_at, right)


def _affinity(terms: Json) -> Json:
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [terms]}}}


MISTAKES: Mapping[str, Mistake] = {
    "affinity": Mistake({"affinity": _affinity(_NOWHERE)}, {"affinity": None}),
    "node-selector": Mistake({"nodeSelector": {"no-such": "label"}}, {"nodeSelector": None}),
    "cpu": Mistake({"requests": {"cpu": "10000"}}, {"requests": {"cpu": None}}),
    "no-image": Mistake({"version": MISSING}, {"version": None}),
    "toml": Mistake({"config": "log = ["}, {"config": {}}),
    "no-secret": Mistake({"env": [_NO_SECRET]}, {"env": None}),
    "no-class": Mistake({"storageVolumes": [_NO_CLASS]}, {"storageVolumes": None}),
    "no-tls": Mistake({"tlsCluster": {"enabled": True}}, {"tlsCluster": None}, whole=True),
}

NO_CLASS_OF_DATA = Mistake({"storageClassName": "no-such-class"}, {"storageClassName": None})
"""A missing class of the data volume; made with the cluster, because existing volumes keep their class."""


def _plan(rest: str) -> Plan:
    """The plan called `mistake/<rest>`. Raises InvalidPlan."""
    what, _, situation = rest.partition("@")
    component = next((each for each in all_components() if what.startswith(f"{each}-")), "")
    kind = what.removeprefix(f"{component}-")
    if component not in all_components() or kind not in MISTAKES or situation not in ("", _ROLLING):
        raise InvalidPlan(
            f"{rest!r} is no `COMPONENT-KIND` or `COMPONENT-KIND@{_ROLLING}` with kind one of {', '.join(MISTAKES)}"
        )
    home = home_of(component)
    at = home.begins_at + (_HALFWAY if situation else 1.0)
    roll = (home.merge(home.begins_at + 1.0, {"annotations": {"roll": "1"}}),) if situation else ()
    return Plan(
        name=f"{FAMILY.name}/{rest}",
        cluster=home.cluster,
        budget=at + _UNNOTICED + _HEALED,
        edits=(*home.made, *roll, *MISTAKES[kind].edits(home, at, at + _UNNOTICED)),
        given=(NO_IMAGE, *of_all_components(home.cluster)),
        reference=False,
    )


def _plans() -> Iterator[Plan]:
    """All mistakes; mistakes of the whole cluster only with PD, TiKV and TiDB."""
    for component in all_components():
        kinds = [each for each, mistake in MISTAKES.items() if not mistake.whole or home_of(component).cluster == SMALL]
        for kind in kinds:
            yield _plan(f"{component}-{kind}")
            yield _plan(f"{component}-{kind}@{_ROLLING}")


FAMILY = Family("mistake", _plan, _plans)

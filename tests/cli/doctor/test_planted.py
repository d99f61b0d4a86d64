"""Planted causes are found in the sandbox, each on the object that has it (scheduler-deployment.md 13)."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

import pytest

from cli.doctor.finding import Finding
from tests.cli.doctor.looking import findings, shows
from tests.cli.doctor.planting import IN_BOTH, Plant, cluster
from tests.operator_world import NAMESPACE, OperatorWorld

_AT_ONCE = 8
"""Clusters of one world: few enough for it to be quick."""

_SECONDS = 12.0
_LATER = timedelta(minutes=4)
"""The time for schedulers and provisioners."""


def _refused(why: str, field: str = "", value: str = "") -> tuple[str, Plant]:
    return why, Plant(_REASONS[why], object="StatefulSet {name}-pd", field_=field, value=value)


_REASONS = {
    "exceeded quota: small, requested: pods=1, used: pods=0, limited: pods=0": "QuotaExceeded",
    "failed quota: small: must specify limits.cpu for: pd": "QuotaNeedsRequests",
    "maximum cpu usage per Container is 500m, but limit is 1": "LimitRangeRefuses",
    'violates PodSecurity "restricted:latest": runAsNonRoot != true': "PodSecurityRefuses",
    'admission webhook "policy.example.com" denied the request: not on a Sunday': "AdmissionRefused",
    'failed calling webhook "policy.example.com": failed to call webhook: connection refused': "WebhookUnreachable",
    "it is Sunday": "PodNotCreated",
}
"""The API server's error messages; the doctor never reaches the refusal of two of them."""

REFUSED: Mapping[str, tuple[str, Plant]] = {f"refused-{number}": _refused(why) for number, why in enumerate(_REASONS)}

BROKEN: Mapping[str, Plant] = {
    "architecture": Plant(
        "ImageForAnotherArchitecture", {"version": "v8.5.3"}, field_="spec.pd.version", value="pingcap/pd:v8.5.3"
    ),
    "limit": Plant("OutOfMemory", field_="spec.pd.limits.memory", value="1Gi"),
    "topology": Plant(
        "TopologyFull",
        {
            "schedulerName": "tidb-scheduler",
            "replicas": 3,
            "nodeSelector": {"kubernetes.io/hostname": "node-0"},
        },
        beside=frozenset({"NoNodeMatches", "WaitingForOtherPod"}),
        object="Pod {name}-pd-1",
    ),
}


@pytest.fixture(scope="module")
def found() -> Mapping[str, Sequence[Finding]]:
    """The findings of all clusters: a few of them in each world."""
    plants = {**IN_BOTH, **{name: plant for name, (_, plant) in REFUSED.items()}, **BROKEN}
    names = list(plants)
    every: dict[str, Sequence[Finding]] = {}
    for first in range(0, len(names), _AT_ONCE):
        world = OperatorWorld()
        _break(world)
        here = names[first : first + _AT_ONCE]
        for name in here:
            plants[name].before(world.admin, NAMESPACE, name)
            world.apply(cluster(name, plants[name]))
        world.run(_SECONDS)
        every |= {name: findings(world, name, _LATER) for name in here}
        world.stop()
    return every


def _break(world: OperatorWorld) -> None:
    faults = world.world.faults
    for name, (why, _) in REFUSED.items():
        faults.creation_refused("pods", f"{name}-pd-*", why)
    faults.image_for_others("*:v8.5.3")
    faults.pod_out_of_memory(f"{NAMESPACE}/limit-pd-0")


@pytest.mark.slow
@pytest.mark.parametrize("name", [*IN_BOTH, *REFUSED, *BROKEN])
def test_names_a_planted_cause(found: Mapping[str, Sequence[Finding]], name: str) -> None:
    plants = {**IN_BOTH, **{each: plant for each, (_, plant) in REFUSED.items()}, **BROKEN}
    shows(found[name], name, plants[name])

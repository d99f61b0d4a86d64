"""A roll whose next step the data plane refuses or delays for ten minutes counts as stuck, whichever hook it is.

The operator is restarted in the middle: what has been before counts as well.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, fields
from datetime import timedelta
from functools import partial

import pytest

from apis.components import DM_CLUSTER, TIDB_CLUSTER
from apis.times import parse_time
from kube.objects import Json, condition_of
from kube.resources import PODS
from member.components import workloads
from member.lifecycle.rolling import Rolling
from ports.clock import FakeClock
from sandbox.dataplane.faults import Fault, Trouble
from tests.controllers.dmcluster.dm_world import NAME, DMWorld
from tests.operator_world import NAMESPACE, OperatorWorld, sample

HOOKS = ("begin", "prepare", "resume", "finish", "spare", "announce")
"""The hooks of a roll that may ask the data plane."""

REFUSAL = "[PD:core:ErrNotNow]not now"

RESTARTED_AFTER, LOOKED_AT_AFTER = 400.0, 260.0
"""Seconds of the refusal before and after the restart of the operator: together more than ten minutes."""


@dataclass(frozen=True)
class Refused:
    """Requests that are refused during a change: method, globs of the paths.

    `unready`: the pod that Kubernetes reports as not Ready. `parts`: the spec of the cluster beside the sample's.
    `body`: what the servers answer without doing it. `waits`: the text and the reason of the wait which that causes.
    """

    method: str
    paths: str
    change: Json
    unready: str = ""
    parts: Json | None = None
    status: int = 500
    body: str = f'"{REFUSAL}"'
    waits: tuple[str, str] = ("", "")


ROLLED: Json = {"annotations": {"a": "b"}}
UPGRADED: Json = {"version": "v8.5.9"}
MICROSERVICES: Json = {
    "pd": {"mode": "ms"},
    "pdms": [{"name": each, "replicas": 2} for each in ("tso", "scheduling")],
}
EVICTION, TRANSFER = "/pd/api/v1/schedulers*", "/pd/api/v1/leader/transfer/*"

REFUSALS: Mapping[str, Refused] = {
    "pd.prepare": Refused("POST", TRANSFER, ROLLED),
    "pd.spare": Refused("POST", TRANSFER, ROLLED, unready="basic-pd-{leader}"),
    "pd.finish": Refused("GET", "/pd/api/v2/ready /pd/api/v1/stores*", ROLLED),
    "tikv.prepare": Refused("POST", EVICTION, ROLLED),
    "tikv.resume": Refused("DELETE", EVICTION, ROLLED),
    "tidb.prepare": Refused("POST", "/upgrade/start", UPGRADED),
    "tidb.announce": Refused("POST", "/upgrade/start", UPGRADED, unready="basic-tidb-1"),
    "tidb.finish": Refused("POST", "/upgrade/finish", UPGRADED),
    "tso.prepare": Refused("POST", "/tso/api/v1/primary/transfer", ROLLED, parts=MICROSERVICES),
    "scheduling.prepare": Refused("POST", "/scheduling/api/v1/primary/transfer", ROLLED, parts=MICROSERVICES),
    "dm-master.prepare": Refused("*", "/apis/v1alpha1/*leader*", ROLLED),
    "dm-master.spare": Refused("*", "/apis/v1alpha1/*leader*", ROLLED, unready="sync-dm-master-{leader}"),
}

PRETENDS = partial(Refused, status=200, body="null")
"""Requests that servers accept without an effect."""

WAITS: Mapping[str, Refused] = {
    "pd.prepare-leader": PRETENDS(
        "POST", TRANSFER, ROLLED, waits=("transferring PD leadership from pod", "TransferringPDLeader")
    ),
    "pd.prepare-loading": Refused(
        "GET", "/pd/api/v2/ready", ROLLED, waits=("waiting for PD member basic-pd-", "PDLoading")
    ),
    "pd.spare": PRETENDS(
        "POST",
        TRANSFER,
        ROLLED,
        unready="basic-pd-{leader}",
        waits=("transferring PD leadership from pod", "TransferringPDLeader"),
    ),
    "tikv.prepare": PRETENDS(
        "GET",
        "/metrics",
        ROLLED,
        body='tikv_raftstore_region_count{type="leader"} 7\n',
        waits=("evicting leaders from pod basic-tikv-2", "EvictingLeaders"),
    ),
    "ticdc.prepare": PRETENDS(
        "PUT",
        "/api/v1/captures/drain",
        ROLLED,
        parts={"ticdc": {"replicas": 3, "gracefulShutdownTimeout": "2h"}},
        body='{"current_table_count": 3}',
        waits=("moving 3 tables away from pod basic-ticdc-2", "HandingOver"),
    ),
    "tso.prepare": PRETENDS(
        "POST",
        "/tso/api/v1/primary/transfer",
        ROLLED,
        parts=MICROSERVICES,
        waits=("is the primary of tso in place of pod", "TransferringPrimary"),
    ),
    "dm-master.prepare": PRETENDS(
        "PUT",
        "/apis/v1alpha1/leader/*",
        ROLLED,
        body='{"result": true}',
        waits=("waiting until another master leads in place of pod", "TransferringDMMasterLeader"),
    ),
}

NOT_REFUSED: Mapping[str, str] = {
    "ticdc.prepare": "has a limit of its own, gracefulShutdownTimeout",
    "ticdc.resume": "asks nothing",
    "pump.begin": "asks nothing",
    "tikv.spare": "asks PD only for the stores, which this reconcile has just observed",
    "tiflash.prepare": "asks PD only for the stores, which this reconcile has just observed",
    "tiflash.spare": "asks PD only for the stores, which this reconcile has just observed",
}


def _name(component: str) -> str:
    return NAME if component.startswith("dm-") else "basic"


def _section(component: str) -> str:
    return component.removeprefix("dm-")


def _world(component: str, refused: Refused, clock: FakeClock) -> OperatorWorld:
    """A cluster that can lose a pod of each component, Ready."""
    if component.startswith("dm-"):
        dm = DMWorld(clock=clock)
        dm.bring_up()
        return dm
    world, cluster = OperatorWorld(clock=clock), sample("basic")
    for name, replicas in (("pd", 3), ("tikv", 3), ("tidb", 2)):
        cluster["spec"][name]["replicas"] = replicas
    cluster["spec"]["tikv"]["evictLeaderTimeout"] = "2h"
    cluster["spec"]["pd"] |= (refused.parts or {}).get("pd", {})
    cluster["spec"] |= {key: value for key, value in (refused.parts or {}).items() if key != "pd"}
    world.apply(cluster)
    world.run_until_ready()
    return world


def _begun(world: OperatorWorld, component: str, refused: Refused) -> Iterator[Callable[[], None]]:
    """Begin the refusal and the change; yields what ends the former."""
    target, network = f"{NAMESPACE}/{_name(component)}-*", world.world.data_plane.network
    for path in refused.paths.split():
        body = refused.body.encode()
        fault = Fault(Trouble.ANSWER, target, method=refused.method, path=path, status=refused.status, body=body)
        network.inject(fault)
        yield partial(network.heal, fault)
    if component in ("tso", "scheduling"):
        changed = [each | (refused.change if each["name"] == component else {}) for each in MICROSERVICES["pdms"]]
        world.change(pdms=changed)
    else:
        world.change(_name(component), **{_section(component): refused.change})
    if refused.unready:
        # the template is written while the pod is Ready
        world.run_until(lambda: "Done" != _told(world, component)["reason"])
        pod = refused.unready.format(leader=_leader(world, component))
        yield world.world.faults.pod_unready(f"{NAMESPACE}/{pod}")
        world.run_until(lambda: not _is_ready(world, pod))


def _is_ready(world: OperatorWorld, pod: str) -> bool:
    return condition_of(world.get(PODS, pod)["status"]["conditions"], "Ready").get("status") == "True"


def _leader(world: OperatorWorld, component: str) -> str:
    """The ordinal of the leader."""
    if isinstance(world, DMWorld):
        return world.leader.rpartition("-")[2]
    pd = world.world.data_plane.pd_cluster(NAMESPACE, "basic")
    assert pd is not None
    assert pd.leader is not None
    return pd.leader.name.rpartition("-")[2]


def _told(world: OperatorWorld, component: str) -> Json:
    """The condition Progressing of the component."""
    status = world.cluster(_name(component))["status"]
    part = status["pdms"][component] if component in ("tso", "scheduling") else status[_section(component)]
    return condition_of(part.get("conditions") or (), "Progressing")


def test_the_table_has_each_hook_of_each_component() -> None:
    plain = Rolling()
    assert set(HOOKS) < {each.name for each in fields(Rolling)}
    assert REFUSALS.keys() | NOT_REFUSED.keys() == {
        f"{each.name}.{hook}"
        for of in (TIDB_CLUSTER, DM_CLUSTER)
        for each in workloads(of)
        for hook in HOOKS
        if getattr(each.rolling, hook) is not getattr(plain, hook)
    }


def _outlasts_a_restart_until_healed(world: OperatorWorld, component: str, heals: Iterable[Callable[[], None]]) -> None:
    """The reason RollingUpdateStuck, which a new process of the operator keeps, and which ends with the trouble."""
    world.restart()
    world.run(5.0)
    assert "RollingUpdateStuck" == _told(world, component)["reason"]
    for heal in heals:
        heal()
    world.run_until_ready(_name(component), within=600.0)


@pytest.mark.slow
@pytest.mark.rule("7")
@pytest.mark.parametrize("hook", REFUSALS)
def test_a_refused_hook_makes_the_roll_stuck(hook: str, clock: FakeClock) -> None:
    component, refused = hook.partition(".")[0], REFUSALS[hook]
    with ExitStack() as stack:
        world = _world(component, refused, clock)
        stack.callback(world.stop)
        heals = list(_begun(world, component, refused))
        begins = "cannot find out" if hook.endswith(".spare") else "cannot"
        world.run_until(lambda: _told(world, component)["message"].startswith(begins), 200.0)
        what = _told(world, component)["message"].partition(REFUSAL)[0] + REFUSAL
        world.run(RESTARTED_AFTER)
        assert "ApiError" == _told(world, component)["reason"]
        world.restart()
        world.run(LOOKED_AT_AFTER)
        stuck = _told(world, component)
        assert ("RollingUpdateStuck", "True") == (stuck["reason"], stuck["status"])
        assert what in stuck["message"]
        _outlasts_a_restart_until_healed(world, component, heals)


@pytest.mark.slow
@pytest.mark.rule("7")
@pytest.mark.parametrize("hook", WAITS)
def test_a_hook_that_waits_without_progress_makes_the_roll_stuck(hook: str, clock: FakeClock) -> None:
    component, waits = hook.partition(".")[0], WAITS[hook]
    what, reason = waits.waits
    with ExitStack() as stack:
        world = _world(component, waits, clock)
        stack.callback(world.stop)
        heals = list(_begun(world, component, waits))
        world.run_until(lambda: what in _told(world, component)["message"], 300.0)
        world.run(RESTARTED_AFTER)
        assert reason == _told(world, component)["reason"]
        world.restart()
        world.run(LOOKED_AT_AFTER)
        stuck = _told(world, component)
        assert ("RollingUpdateStuck", "True") == (stuck["reason"], stuck["status"])
        told = re.search(rf"has stood still since (\S+) \({reason}\): .*{what}.*; .+", stuck["message"])
        since = parse_time(told[1]) if told else None
        assert since
        assert world.clock.wall() - timedelta(seconds=RESTARTED_AFTER + LOOKED_AT_AFTER) >= since
        (warning,) = world.events("RollingUpdateStuck")
        assert ("Warning", stuck["message"]) == (warning["type"], warning["message"])
        _outlasts_a_restart_until_healed(world, component, heals)

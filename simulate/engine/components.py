"""The checked components, and the simulator's knowledge of each beside the table in `apis.components`."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from apis import pod_commands
from apis.component_statuses import PDMSStatus
from apis.components import component_type
from apis.tidbcluster import TidbClusterStatus
from kube.objects import Json
from member.components import workload_names
from member.context import FailoverSettings

REFUSED = "hook"
"""The hook whose request servers refuse."""


@dataclass(frozen=True, slots=True)
class Hook:
    """A request of a roll: the component that is asked, method, glob of the path, and what servers answer.

    `names`: what the operator then says that it waits for, empty if it says that it was refused.
    """

    asks: str
    method: str
    path: str
    names: str = ""
    body: str = "null"
    status: int = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The users' edits of a component, and the time for which its members may be lost.

    Random edits choose between `fewest` and `most` replicas; `versions` are the component's own; `config` sets a log
    level; `commands` are annotations with values for its pods; `failover_period` is the seconds before which no failure
    is recorded (I22). `idle_reads`: the live reads of an idle reconcile beside PD's, its stores' and single pods' (O9).
    `hooks` are the requests of a roll that servers can refuse, or answer without doing it, by what the roll lacks then.
    """

    name: str
    fewest: int = 1
    most: int = 4
    versions: tuple[str, ...] = ("v8.5.2", "v8.5.3", "v8.5.4")
    config: Callable[[str], Json] = lambda level: {"log": {"level": level}}
    commands: tuple[tuple[str, str], ...] = ()
    failover_period: Callable[[FailoverSettings], float] = lambda _: math.inf
    idle_reads: int = 0
    hooks: Mapping[str, Hook] = field(default_factory=dict)


_SEVEN_LEADERS = 'tikv_raftstore_region_count{type="leader"} 7\n'


def _primary(name: str) -> Mapping[str, Hook]:
    path = f"/{name}/api/v1/primary/transfer"
    return {REFUSED: Hook(name, "POST", path), "leader": Hook(name, "POST", path, f"is the primary of {name}")}


_PROFILES = {
    each.name: each
    for each in (
        Profile(name="tso", idle_reads=2, hooks=_primary("tso")),
        Profile(name="scheduling", idle_reads=1, hooks=_primary("scheduling")),
        Profile(
            name="pd",
            fewest=3,
            most=5,
            commands=(
                (pod_commands.PD_TRANSFER_LEADER, "none"),
                (pod_commands.PD_TRANSFER_LEADER, "delete-pod"),
                (pod_commands.REPLACE_VOLUME, "true"),
            ),
            hooks={
                REFUSED: Hook("pd", "POST", "/pd/api/v1/leader/transfer/*"),
                "leader": Hook("pd", "POST", "/pd/api/v1/leader/transfer/*", "transferring PD leadership from pod"),
                "loading": Hook("pd", "GET", "/pd/api/v2/ready", "to load its regions", status=500),
            },
            failover_period=lambda settings: settings.pd_period,
        ),
        Profile(name="tiproxy", versions=("v1.3.0", "v1.3.1", "v1.3.2")),
        # its `replace-volume` needs a spare store: another workload covers it
        Profile(
            name="tikv",
            fewest=3,
            most=6,
            commands=((pod_commands.EVICT_LEADER, "none"), (pod_commands.EVICT_LEADER, "delete-pod")),
            failover_period=lambda settings: settings.tikv_period,
            hooks={
                REFUSED: Hook("pd", "POST", "/pd/api/v1/schedulers*"),
                "leader": Hook("tikv", "GET", "/metrics", "evicting leaders from pod", _SEVEN_LEADERS),
            },
        ),
        Profile(name="pump", most=3, idle_reads=1),
        Profile(
            name="tiflash",
            most=3,
            config=lambda level: {"config": {"logger": {"level": level}}},
            failover_period=lambda settings: settings.tiflash_period,
        ),
        Profile(
            name="tidb",
            commands=((pod_commands.TIDB_GRACEFUL_SHUTDOWN, "delete-pod"), (pod_commands.REPLACE_VOLUME, "true")),
            failover_period=lambda settings: settings.tidb_period,
            hooks={REFUSED: Hook("tidb", "POST", "/upgrade/*")},
        ),
        Profile(
            name="ticdc",
            config=lambda level: {"log-level": level},
            hooks={
                "tables": Hook(
                    "ticdc",
                    "PUT",
                    "/api/v1/captures/drain",
                    "moving 3 tables away from pod",
                    '{"current_table_count": 3}',
                )
            },
        ),
        Profile(name="tici-meta", versions=("v9.0.0", "v9.0.1"), idle_reads=1),
        Profile(name="tici-worker", versions=("v9.0.0", "v9.0.1")),
        Profile(
            name="dm-master",
            fewest=3,
            most=5,
            config=lambda level: {"log-level": level},
            failover_period=lambda settings: settings.dm_master_period,
            hooks={
                REFUSED: Hook("dm-master", "PUT", "/apis/v1alpha1/leader/*"),
                "leader": Hook(
                    "dm-master",
                    "PUT",
                    "/apis/v1alpha1/leader/*",
                    "another master leads in place of pod",
                    '{"result": true}',
                ),
            },
        ),
        Profile(
            name="dm-worker",
            config=lambda level: {"log-level": level},
            failover_period=lambda settings: settings.dm_worker_period,
        ),
    )
}


def managed_components() -> tuple[str, ...]:
    """The checked components: those that the operator runs in StatefulSets, in the order of the table."""
    return workload_names()


def cluster_of(key: str) -> str:
    """The cluster `namespace/name` of a sync's key, which may be a pod's."""
    workload, _, ordinal = key.rpartition("-")
    found = next((component for component in managed_components() if workload.endswith(f"-{component}")), "")
    return workload.removesuffix(f"-{found}") if found and ordinal.isdecimal() else key


def asked_one_by_one(component: str) -> bool:
    """True if its servers report their own state."""
    status = component_type(component).status(TidbClusterStatus(pdms={component: PDMSStatus()}))
    return status is not None and status.servers is not None


def says_synced(component: str) -> bool:
    """True if its status records if the last observation succeeded."""
    status = component_type(component).status(TidbClusterStatus(pdms={component: PDMSStatus()}))
    return status is not None and not status.is_current


def profile(component: str) -> Profile:
    """The profile of a component; a new one has few replicas, no commands and no failover."""
    return _PROFILES.get(component) or Profile(name=component)

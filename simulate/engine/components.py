"""The checked components, and the simulator's knowledge of each beside the table in `apis.components`."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from apis import pod_commands
from apis.component_statuses import PDMSStatus
from apis.components import component_type
from apis.tidbcluster import TidbClusterStatus
from kube.objects import Json
from member.components import workload_names
from member.context import FailoverSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The users' edits of a component, and the time for which its members may be lost.

    Random edits choose between `fewest` and `most` replicas; `versions` are the component's own; `config` sets a log
    level; `commands` are annotations with values for its pods; `failover_period` is the seconds before which no failure
    is recorded (I22). `idle_reads`: the live reads of an idle reconcile beside PD's, its stores' and single pods' (O9).
    `hook` is the request of a roll that servers can refuse, as the component that is asked, method, and glob of the
    path; None without one.
    """

    name: str
    fewest: int = 1
    most: int = 4
    versions: tuple[str, ...] = ("v8.5.2", "v8.5.3", "v8.5.4")
    config: Callable[[str], Json] = lambda level: {"log": {"level": level}}
    commands: tuple[tuple[str, str], ...] = ()
    failover_period: Callable[[FailoverSettings], float] = lambda _: math.inf
    idle_reads: int = 0
    hook: tuple[str, str, str] | None = None


_PROFILES = {
    each.name: each
    for each in (
        Profile(name="tso", idle_reads=2, hook=("tso", "POST", "/tso/api/v1/primary/transfer")),
        Profile(name="scheduling", idle_reads=1, hook=("scheduling", "POST", "/scheduling/api/v1/primary/transfer")),
        Profile(
            name="pd",
            fewest=3,
            most=5,
            commands=(
                (pod_commands.PD_TRANSFER_LEADER, "none"),
                (pod_commands.PD_TRANSFER_LEADER, "delete-pod"),
                (pod_commands.REPLACE_VOLUME, "true"),
            ),
            hook=("pd", "POST", "/pd/api/v1/leader/transfer/*"),
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
            hook=("pd", "POST", "/pd/api/v1/schedulers*"),
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
            hook=("tidb", "POST", "/upgrade/*"),
        ),
        Profile(name="ticdc", config=lambda level: {"log-level": level}),
        Profile(
            name="dm-master",
            fewest=3,
            most=5,
            config=lambda level: {"log-level": level},
            failover_period=lambda settings: settings.dm_master_period,
            hook=("dm-master", "PUT", "/apis/v1alpha1/leader/*"),
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
    found = next((each for each in managed_components() if workload.endswith(f"-{each}")), "")
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

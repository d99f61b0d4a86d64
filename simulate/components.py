"""The components that the simulator judges, and what it knows of each beside the table in `apis.components`."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from apis import pod_commands
from member.components import workload_names
from member.context import FailoverSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What users do with a component, and how long its members may be lost.

    `fewest` and `most` are the replicas that random edits ask for; `commands` the annotations, each with a value, that
    they put on its pods; `failover_period` the seconds before which no failure is recorded (I22). `says_synced`: its
    status says whether the last observation succeeded. `idle_reads`: the live reads of an idle reconcile for
    so many pods, beside those of PD and its stores (O9).
    """

    name: str
    fewest: int = 1
    most: int = 4
    commands: tuple[tuple[str, str], ...] = ()
    failover_period: Callable[[FailoverSettings], float] = lambda _: math.inf
    says_synced: bool = True
    idle_reads: Callable[[int], int] = lambda _: 0


_PROFILES = {
    each.name: each
    for each in (
        Profile(name="tso", idle_reads=lambda pods: 2 * min(pods, 1)),
        Profile(name="scheduling", idle_reads=lambda pods: min(pods, 1)),
        Profile(
            name="pd",
            fewest=3,
            most=5,
            commands=(
                (pod_commands.PD_TRANSFER_LEADER, "none"),
                (pod_commands.PD_TRANSFER_LEADER, "delete-pod"),
                (pod_commands.REPLACE_VOLUME, "true"),
            ),
            failover_period=lambda settings: settings.pd_period,
        ),
        # its `replace-volume` needs a store to spare: there is a workload of that
        Profile(
            name="tikv",
            fewest=3,
            most=6,
            commands=((pod_commands.EVICT_LEADER, "none"), (pod_commands.EVICT_LEADER, "delete-pod")),
            failover_period=lambda settings: settings.tikv_period,
        ),
        Profile(name="pump", most=3, says_synced=False, idle_reads=lambda pods: min(pods, 1)),
        Profile(
            name="tidb",
            commands=((pod_commands.TIDB_GRACEFUL_SHUTDOWN, "delete-pod"), (pod_commands.REPLACE_VOLUME, "true")),
            failover_period=lambda settings: settings.tidb_period,
            says_synced=False,
            idle_reads=lambda pods: pods,
        ),
    )
}


def managed_components() -> tuple[str, ...]:
    """The components that are judged: those that the operator runs in StatefulSets, in the order of the table."""
    return workload_names()


def profile(component: str) -> Profile:
    """What is known of a component; a new one has few replicas, no commands and no failover."""
    return _PROFILES.get(component) or Profile(name=component)

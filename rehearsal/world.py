"""The sandbox as shipped: with the operator's CRDs, programs and scheduler extender."""

from collections.abc import Callable, Iterable, Mapping

from apis.crd import KINDS, definition
from apis.images import parse
from discovery.app import make_handler
from manifests import ADVANCED_STATEFUL_SET
from member.backups.pods import MANAGER_IMAGE
from ports.clock import Clock
from ports.randomness import Randomness
from sandbox.dataplane.commands import Command, Surroundings
from sandbox.dataplane.program import Factory
from sandbox.kubelet.nodes import NodeSpec
from sandbox.timings import Timings
from sandbox.world import Real, World, load_crds
from scheduler.app import COMPONENT as TIDB_SCHEDULER
from scheduler.app import make_handler as make_extender

DISCOVERY = "/usr/local/bin/tidb-discovery"
"""The command of discovery's container, which v1.6's Deployments also call."""


def _backup_manager(surroundings: Surroundings) -> int:
    """`backup-manager`, whose libraries are an extra of this package. A crash names what is missing."""
    from rehearsal.backups import backup_manager  # noqa: PLC0415  (the operator's image has no object storage)

    return backup_manager(surroundings)


PROGRAMS: Mapping[str, Factory] = {DISCOVERY: make_handler}
_MANAGERS = (parse(MANAGER_IMAGE).repository, "tidb-backup-manager")
"""The images of this operator and v1.6, which users may name."""
COMMANDS: Mapping[str, Command] = dict.fromkeys(_MANAGERS, _backup_manager)


def new_world(
    clock: Clock,
    randomness: Randomness,
    timings: Timings | None = None,
    nodes: Iterable[NodeSpec] | None = None,
    pause: Callable[[float], None] | None = None,
    *,
    advanced: bool = False,
    machine: Real | None = None,
) -> World:
    """A sandbox that can run TidbClusters and Backups; not started yet. By default it is fast and has three nodes.

    `advanced`: with the controller of Advanced StatefulSets. For `pause` and `machine` see `World`.
    """
    crds = load_crds(ADVANCED_STATEFUL_SET) if advanced else ()
    return World(
        clock,
        randomness,
        timings,
        programs=PROGRAMS,
        commands=COMMANDS,
        crds=[*(definition(kind) for kind in KINDS), *crds],
        nodes=nodes,
        pause=pause,
        extenders={TIDB_SCHEDULER: make_extender},
        machine=machine,
    )

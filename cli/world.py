"""The sandbox as this project ships it: with our CRDs, our discovery service in its pods, and our extender."""

from apis.crd import KINDS, definition
from discovery.app import make_handler
from ports.clock import Clock
from ports.randomness import Randomness
from sandbox.world import World
from scheduler.app import COMPONENT as TIDB_SCHEDULER
from scheduler.app import make_handler as make_extender

DISCOVERY = "/usr/local/bin/tidb-discovery"
"""The command of Discovery's container, which v1.6's Deployments call as well."""


def new_world(clock: Clock, randomness: Randomness) -> World:
    """A sandbox that can run TidbClusters; not started yet."""
    return World(
        clock,
        randomness,
        programs={DISCOVERY: make_handler},
        crds=[definition(kind) for kind in KINDS],
        extenders={TIDB_SCHEDULER: make_extender},
    )

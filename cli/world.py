"""The sandbox as this project ships it: with our CRD, and with our discovery service in its pods."""

from apis.crd import KINDS, definition
from discovery.app import make_handler
from ports.clock import Clock
from ports.randomness import Randomness
from sandbox.world import World

DISCOVERY = "/usr/local/bin/tidb-discovery"
"""The command of Discovery's container, which v1.6's Deployments call as well."""


def new_world(clock: Clock, randomness: Randomness) -> World:
    """A sandbox that can run TidbClusters; not started yet."""
    return World(clock, randomness, programs={DISCOVERY: make_handler}, crds=[definition(kind) for kind in KINDS])

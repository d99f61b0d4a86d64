"""How long things take in the sandbox, in seconds of its clock (dataplane-apis.md 15)."""

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Timings:
    """Durations in seconds. The defaults are what a newcomer waits for: seconds instead of minutes."""

    image_pull: float = 0.1
    init_container: float = 0.05
    container_start: float = 0.05
    probe_delay: float = 0.02
    """What one second of a probe's initialDelaySeconds lasts."""
    probe_period: float = 0.1
    """What one second of a probe's periodSeconds lasts, and how often a dependency is looked for again."""
    crash_back_off: float = 0.2
    crash_back_off_cap: float = 15.0
    graceful_stop: float = 0.1
    grace_second: float = 0.1
    """What one second of terminationGracePeriodSeconds lasts."""
    volume_provision: float = 0.05
    node_heartbeat: float = 10.0

    discovery_retry: float = 0.3
    """The longest pause between two questions to discovery; each pause is drawn between a tenth of it and it."""
    pd_start: float = 0.2
    pd_join: float = 0.1
    pd_election: float = 0.3
    pd_leader_loss: float = 3.0
    """How long the others take to notice that the PD leader is gone."""
    pd_leader_wait: float = 3.0
    """How long a follower waits for a leader before it answers 503."""
    pd_regions_loaded: float = 0.3

    tikv_start: float = 0.2
    store_heartbeat: float = 10.0
    store_disconnected: float = 20.0
    store_check: float = 1.0
    """How often PD looks whether a store has drained."""
    raft_election: float = 1.0
    """How long a region whose leader's process died goes without one."""
    region_tick: float = 0.2

    tidb_start: float = 0.2
    topology_refresh: float = 30.0
    topology_lease: float = 45.0

    def scaled(self, factor: float) -> "Timings":
        """The same world, `factor` times as slow."""
        return Timings(**{field.name: getattr(self, field.name) * factor for field in fields(self)})

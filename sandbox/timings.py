"""How long things take in the sandbox, in seconds of its clock (dataplane-apis.md 15)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timings:
    """Durations in seconds. The defaults are what a newcomer waits for: seconds instead of minutes."""

    image_pull: float = 0.1
    init_container: float = 0.05
    container_start: float = 0.05
    probe_delay: float = 0.02
    """What one second of a probe's initialDelaySeconds lasts."""
    probe_period: float = 0.0
    """What one second of a probe's periodSeconds lasts; with 0 readiness follows the process at once."""
    task: float = 0.2
    """How long a program works that the sandbox knows nothing of, in a pod that ends."""
    command_call: float = 0.01
    """How long it takes a command in a pod to reach somebody outside of it."""
    br_region: float = 0.2
    """How long BR takes for a region."""
    dependency_retry: float = 0.1
    """How often TiKV and TiDB look for what they need to start."""
    crash_back_off: float = 0.2
    """The pause after a second crash, doubled with each further one; after the first there is none."""
    crash_back_off_cap: float = 15.0
    graceful_stop: float = 0.1
    grace_second: float = 0.1
    """What one second of terminationGracePeriodSeconds lasts."""
    volume_provision: float = 0.05
    secret_refresh: float = 1.0
    """From a change of a Secret until the containers that mount it see it."""
    node_heartbeat: float = 10.0
    node_monitor_grace: float = 0.0
    """How long a node may be silent before it is NotReady."""

    script_second: float = 0.1
    """What one second that a script sleeps lasts."""
    pd_start: float = 0.2
    pd_join: float = 0.1
    pd_join_file: float = 0.01
    """From the addition of a member until it has written down that it is one."""
    pd_connected: float = 0.5
    """How long all members must have been connected before etcd adds another one."""
    pd_election: float = 0.3
    pd_leader_loss: float = 3.0
    """How long the others take to notice that the PD leader is gone."""
    pd_leader_wait: float = 3.0
    """How long a follower waits for a leader before it answers 503."""
    pd_regions_loaded: float = 0.3
    pd_stores_loaded: float = 0.3
    """How long a new leader calls the cluster not bootstrapped, because it has yet to load the stores."""
    pd_regions_reported: float = 2.0
    """How long it takes until the leaders of all regions have reported to a new PD leader; until then none moves."""

    microservice_lease: float = 1.0
    """How long a member of a PD microservice counts as one after it was heard last."""

    tikv_start: float = 0.2
    tiflash_start: float = 0.2
    """From its registration until TiFlash's store is Running."""
    store_heartbeat: float = 10.0
    store_disconnected: float = 20.0
    store_saved: float = 300.0
    """How often PD writes down when it last heard a store, which is all that its next leader knows."""
    store_check: float = 1.0
    """How often PD looks whether a store has drained."""
    raft_election: float = 1.0
    """How long a region whose leader's process died goes without one."""
    region_tick: float = 0.2
    leader_moves: float = 50.0
    """Leaders that move in a second."""
    peer_moves: float = 25.0
    """Peers that a store receives in a second."""

    pump_start: float = 0.1
    pump_heartbeat: float = 10.0
    pump_drain: float = 1.0
    """How long drainers take to read what a Pump has when it is closed."""

    tidb_start: float = 0.2
    topology_refresh: float = 30.0
    topology_lease: float = 45.0

    capture_start: float = 0.2
    capture_lease: float = 10.0
    capture_tick: float = 1.0
    """How often a capture keeps its session alive, and the owner moves tables."""
    capture_election: float = 1.0
    """How long there is no owner until another capture is."""
    capture_missed: float = 5.0
    """How long the owner waits for a capture that is gone before it gives its tables to others."""
    table_moves: float = 4.0
    """Tables that move in a second."""

    dm_worker_start: float = 0.2
    dm_worker_tick: float = 1.0
    """How often a worker of DM says that it is alive."""
    dm_worker_lease: float = 6.0
    """How long DM's masters wait for that."""

    @classmethod
    def real(cls) -> "Timings":
        """Durations of real clusters (dataplane-apis.md 15)."""
        return cls(
            image_pull=5.0,
            init_container=1.0,
            container_start=1.0,
            probe_delay=1.0,
            probe_period=1.0,
            task=5.0,
            command_call=0.05,
            br_region=1.0,
            dependency_retry=1.0,
            crash_back_off=10.0,
            crash_back_off_cap=300.0,
            graceful_stop=2.0,
            grace_second=1.0,
            volume_provision=3.0,
            secret_refresh=60.0,
            node_monitor_grace=50.0,
            script_second=1.0,
            pd_start=2.0,
            pd_join=1.0,
            pd_join_file=0.1,
            pd_connected=5.0,
            pd_election=1.0,
            pd_leader_loss=5.0,
            pd_regions_loaded=3.0,
            pd_stores_loaded=1.0,
            pd_regions_reported=60.0,
            microservice_lease=3.0,
            tikv_start=5.0,
            tiflash_start=10.0,
            store_check=10.0,
            raft_election=15.0,
            region_tick=1.0,
            leader_moves=3.0,
            peer_moves=0.25,
            pump_start=2.0,
            pump_heartbeat=2.0,
            pump_drain=10.0,
            tidb_start=5.0,
            capture_start=3.0,
            capture_election=2.0,
            capture_missed=15.0,
            table_moves=1.0,
            dm_worker_start=2.0,
            dm_worker_tick=10.0,
            dm_worker_lease=60.0,
        )

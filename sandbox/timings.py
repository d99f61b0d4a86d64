"""Durations in the sandbox, in seconds of its clock (dataplane-apis.md 15)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timings:
    """Durations in seconds. The defaults suit a newcomer: seconds instead of minutes."""

    image_pull: float = 0.1
    init_container: float = 0.05
    container_start: float = 0.05
    probe_delay: float = 0.02
    """The duration of one second of a probe's initialDelaySeconds."""
    probe_period: float = 0.0
    """The duration of one second of a probe's periodSeconds; with 0 readiness follows the process immediately."""
    task: float = 0.2
    """The running time of an unknown program in a pod that ends."""
    command_call: float = 0.01
    """The time of a command's external call."""
    br_region: float = 0.2
    """BR's time per region."""
    dependency_retry: float = 0.1
    """The interval at which TiKV and TiDB check for their dependencies."""
    crash_back_off: float = 0.2
    """The pause after a second crash, doubled with each further one; there is none after the first."""
    crash_back_off_cap: float = 15.0
    graceful_stop: float = 0.1
    grace_second: float = 0.1
    """The duration of one second of terminationGracePeriodSeconds."""
    volume_provision: float = 0.05
    volume_check: float = 0.0
    """The interval at which the scheduler checks if the volumes of a pod are there; with 0 it knows at once."""
    volume_modification: float = 1.0
    """The time in which a driver changes the attributes of a volume."""
    volume_modification_pause: float = 6 * 3600.0
    """The time after a change of attributes in which the driver refuses another one."""
    secret_refresh: float = 1.0
    """The time until a changed Secret is visible in containers that mount it."""
    node_heartbeat: float = 10.0
    """The interval at which a node reports, and a silent one is noticed."""
    node_lease_renewal: float = 10.0
    """The interval at which a node renews its Lease, which no part of the sandbox reads."""
    node_monitor_grace: float = 0.0
    """The time without heartbeats after which a node is NotReady."""

    script_second: float = 0.1
    """The duration of one second of a script's sleep."""
    pd_start: float = 0.2
    pd_join: float = 0.1
    pd_join_file: float = 0.01
    """The time between a member's addition and its record of it."""
    pd_connected: float = 0.5
    """The time for which all members must have been connected before etcd adds another one."""
    pd_election: float = 0.3
    pd_leader_loss: float = 3.0
    """The time until the others notice the loss of the PD leader."""
    pd_leader_wait: float = 3.0
    """The time that a follower waits for a leader before it answers 503."""
    pd_regions_loaded: float = 0.3
    pd_stores_loaded: float = 0.3
    """The time for which a new leader reports the cluster as not bootstrapped, because it has yet to load
    the stores.
    """
    pd_regions_reported: float = 2.0
    """The time until the leaders of all regions have reported to a new PD leader; until then none moves."""

    tikv_log_flush: float = 0.5
    """The time in which a TiKV flushes its log backups on request."""
    microservice_lease: float = 1.0
    """The time after its last report for which a member of a PD microservice counts as alive."""

    tikv_start: float = 0.2
    tiflash_start: float = 0.2
    """The time from registration until TiFlash's store is Running."""
    store_heartbeat: float = 10.0
    store_disconnected: float = 20.0
    peer_down: float = 600.0
    """TiKV's max-peer-down-duration: the silence of a peer after which its region's leader reports it as down."""
    store_saved: float = 300.0
    """The interval at which PD persists the time of a store's last heartbeat, which is all that its next
    leader knows.
    """
    store_check: float = 1.0
    """The interval at which PD checks if a store has drained."""
    raft_election: float = 1.0
    """The time that a region has no leader after its leader's process died."""
    region_tick: float = 0.2
    leader_moves: float = 50.0
    """Leaders that move per second."""
    peer_moves: float = 25.0
    """Peers that a store receives per second."""

    pump_start: float = 0.1
    pump_heartbeat: float = 10.0
    pump_drain: float = 1.0
    """The time that drainers take to read the binlogs of a closed Pump."""

    tidb_start: float = 0.2
    topology_refresh: float = 30.0
    topology_lease: float = 45.0

    capture_start: float = 0.2
    capture_lease: float = 10.0
    capture_tick: float = 1.0
    """The interval at which a capture renews its session, and the owner moves tables."""
    capture_election: float = 1.0
    """The time without an owner until another capture takes over."""
    capture_missed: float = 5.0
    """The time that the owner waits for a missing capture before it reassigns its tables."""
    table_moves: float = 4.0
    """Tables that move per second."""

    tici_start: float = 0.2

    dm_worker_start: float = 0.2
    dm_worker_tick: float = 1.0
    """The interval at which a DM worker renews its lease."""
    dm_worker_lease: float = 6.0
    """The time without a renewal after which DM's masters consider a worker dead."""

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
            volume_check=1.0,
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
            tici_start=2.0,
            dm_worker_start=2.0,
            dm_worker_tick=10.0,
            dm_worker_lease=60.0,
        )

"""The statuses of the components of a TidbCluster (api/tidbcluster.fields)."""

from typing import TypeAlias

from msgspec import field

from apis.shared import (
    ComponentStatus,
    Int32,
    Json,
    Model,
    NullableTime,
    PDMember,
    SyncedStatus,
    TiKVFailureStore,
    TiKVStore,
    Time,
    UnjoinedMember,
)

PUMP_ONLINE = "online"


class PDFailureMember(Model, kw_only=True):
    """A value of `status.pd.failureMembers`: a member replaced by failover (lifecycle.md 9.2)."""

    pod_name: str = ""
    member_id: str = field(name="memberID", default="")
    pvc_uid: str = field(name="pvcUID", default="")
    pvc_uid_set: dict[str, Json] = field(name="pvcUIDSet", default_factory=dict)
    member_deleted: bool = False
    host_down: bool = False
    created_at: NullableTime = None


class PDStatus(SyncedStatus, kw_only=True):
    """`status.pd`: members by name; members of another cluster that share this PD are peers."""

    members: dict[str, PDMember] = {}
    peer_members: dict[str, PDMember] = {}
    leader: PDMember | None = None
    failure_members: dict[str, PDFailureMember] = {}
    unjoined_members: dict[str, UnjoinedMember] = {}
    image: str = ""
    vol_replace_in_progress: bool = False

    @property
    def health(self) -> list[bool]:
        return [member.health for member in self.members.values()]

    @property
    def failed_pods(self) -> list[str]:
        return [member.pod_name for member in self.failure_members.values() if member.member_deleted]

    @property
    def failures(self) -> int:
        return len(self.failure_members)

    def is_available(self, replicas: int) -> bool:
        """See `ComponentStatus`: a quorum of known, healthy and Ready members, peers counted."""
        members = [*self.members.values(), *self.peer_members.values()]
        healthy_peers = sum([member.health for member in self.peer_members.values()])
        quorum = (replicas + len(self.peer_members)) // 2 + 1
        counts = (len(members), sum([member.health for member in members]), self.ready_replicas + healthy_peers)
        return self.runs and min(counts) >= quorum

    @property
    def replaces_volumes(self) -> bool:
        return self.vol_replace_in_progress

    def forget_members(self) -> None:
        self.stateful_set = None
        self.members, self.leader, self.unjoined_members, self.synced = {}, None, {}, False


class PDMSStatus(SyncedStatus, kw_only=True):
    """A value of `status.pdms`, by microservice."""

    name: str = ""
    members: list[str] = []
    image: str = ""

    @property
    def health(self) -> list[bool]:
        """See `ComponentStatus`: registered members serve."""
        return [True for _ in self.members]

    def is_available(self, replicas: int) -> bool:
        """See `ComponentStatus`: one that PD lists is enough, unless none is wanted."""
        return replicas == 0 or (self.runs and self.synced and bool(self.members))

    def forget_members(self) -> None:
        self.stateful_set = None
        self.members, self.synced = [], False


class EvictLeaderStatus(Model, kw_only=True):
    """A value of `status.tikv.evictLeader`: a pod that gives up its leaders; written by the pod controller alone."""

    pod_create_time: Time | None = None
    begin_time: Time | None = None
    value: str = ""


class TiKVStatus(SyncedStatus, kw_only=True):
    """`status.tikv`: stores by id; stores of another cluster on the same PD are peers."""

    boot_strapped: bool = False
    stores: dict[str, TiKVStore] = {}
    peer_stores: dict[str, TiKVStore] = {}
    tombstone_stores: dict[str, TiKVStore] = {}
    failure_stores: dict[str, TiKVFailureStore] = {}
    failover_uid: str = field(name="failoverUID", default="")
    image: str = ""
    evict_leader: dict[str, EvictLeaderStatus] = {}
    vol_replace_in_progress: bool = False

    @property
    def health(self) -> list[bool]:
        return [store.is_up for store in self.stores.values()]

    @property
    def failed_pods(self) -> list[str]:
        return [store.pod_name for store in self.failure_stores.values()]

    def is_available(self, replicas: int) -> bool:  # noqa: ARG002  # one store serves, however many are wanted
        """See `ComponentStatus`: a store is Up and a pod Ready, peers counted."""
        peers = sum(store.is_up for store in self.peer_stores.values())
        return self.runs and min(sum(self.health), self.ready_replicas) + peers >= 1

    @property
    def replaces_volumes(self) -> bool:
        return self.vol_replace_in_progress

    def forget_members(self) -> None:
        self.stateful_set = None
        self.stores, self.synced = {}, False


class TiDBMember(Model, kw_only=True):
    """A value of `status.tidb.members`: a server as its status port last reported it."""

    name: str
    health: bool
    last_transition_time: NullableTime = None
    node: str = ""


class TiDBFailureMember(Model, kw_only=True):
    """A value of `status.tidb.failureMembers`: a server replaced by failover (lifecycle.md 9.4)."""

    pod_name: str = ""
    created_at: NullableTime = None


class TiDBStatus(ComponentStatus, kw_only=True):
    """`status.tidb`: servers by pod name."""

    members: dict[str, TiDBMember] = {}
    failure_members: dict[str, TiDBFailureMember] = {}
    resign_ddl_owner_retry_count: Int32 = field(name="resignDDLOwnerRetryCount", default=0)
    image: str = ""
    password_initialized: bool | None = None
    vol_replace_in_progress: bool = False
    selector: str = ""
    """The label selector of the pods, which the scale subresource shows to autoscalers. v1.6 has none."""

    @property
    def servers(self) -> dict[str, bool]:
        return {pod: member.health for pod, member in self.members.items()}

    @property
    def failed_pods(self) -> list[str]:
        return [member.pod_name for member in self.failure_members.values()]

    @property
    def replaces_volumes(self) -> bool:
        return self.vol_replace_in_progress

    def forget_members(self) -> None:
        self.stateful_set = None
        self.members = {}


class PumpMember(Model, kw_only=True):
    """An entry of `status.pump.members`."""

    node_id: str
    host: str
    state: str


class PumpStatus(ComponentStatus, kw_only=True):
    """`status.pump`: nodes as they registered in PD."""

    members: list[PumpMember] = []

    @property
    def health(self) -> list[bool]:
        return [member.state == PUMP_ONLINE for member in self.members]

    def is_available(self, replicas: int) -> bool:
        """See `ComponentStatus`: at least one is online, unless none is wanted."""
        return self.phase != "Suspend" and (replicas == 0 or any(self.health))

    def forget_members(self) -> None:
        self.stateful_set = None
        self.members = []


class TiFlashStatus(SyncedStatus, kw_only=True):
    """`status.tiflash`: as `status.tikv`."""

    stores: dict[str, TiKVStore] = {}
    peer_stores: dict[str, TiKVStore] = {}
    tombstone_stores: dict[str, TiKVStore] = {}
    failure_stores: dict[str, TiKVFailureStore] = {}
    failover_uid: str = field(name="failoverUID", default="")
    image: str = ""
    vol_replace_in_progress: bool = False

    @property
    def health(self) -> list[bool]:
        return [store.is_up for store in self.stores.values()]

    @property
    def failed_pods(self) -> list[str]:
        return [store.pod_name for store in self.failure_stores.values()]

    @property
    def replaces_volumes(self) -> bool:
        return self.vol_replace_in_progress

    def forget_members(self) -> None:
        self.stateful_set = None
        self.stores, self.synced = {}, False


StoresStatus: TypeAlias = TiKVStatus | TiFlashStatus
"""The status of a component whose pods PD knows as stores."""


class TiProxyMember(Model, kw_only=True):
    """A value of `status.tiproxy.members`: a proxy as its API last reported it."""

    name: str
    health: bool
    info: str = ""
    last_transition_time: NullableTime = None


class TiProxyStatus(SyncedStatus, kw_only=True):
    """`status.tiproxy`: proxies by pod name."""

    members: dict[str, TiProxyMember] = {}

    @property
    def servers(self) -> dict[str, bool]:
        return {pod: member.health for pod, member in self.members.items()}

    def forget_members(self) -> None:
        self.stateful_set = None
        self.members, self.synced = {}, False


class TiCDCCapture(Model, kw_only=True):
    """A value of `status.ticdc.captures`."""

    pod_name: str = ""
    id: str = ""
    version: str = ""
    is_owner: bool = False
    ready: bool = False


class TiCDCStatus(SyncedStatus, kw_only=True):
    """`status.ticdc`: captures by pod name."""

    captures: dict[str, TiCDCCapture] = {}

    @property
    def servers(self) -> dict[str, bool]:
        return {pod: capture.ready for pod, capture in self.captures.items()}

    def forget_members(self) -> None:
        self.stateful_set = None
        self.captures, self.synced = {}, False


class TiCIStatus(ComponentStatus, kw_only=True):
    """`status.ticiMeta` and `status.ticiWorker`; `synced`: as many pods are Ready as the spec wants (TICI-33)."""

    synced: bool = False

    @property
    def health(self) -> list[bool]:
        ready, pods = self.ready_replicas, int((self.stateful_set or {}).get("replicas") or 0)
        return [number < ready for number in range(max(ready, pods))]

    def forget_members(self) -> None:
        self.stateful_set, self.synced = None, False


class TiCIChangefeedStatus(Model, kw_only=True):
    """`status.tici`: the changefeed as TiCDC last reported it. v1.7 has the first three, but writes none (TICI-33).

    `changefeed_checkpoint` follows in steps of six hours. `changefeed_sink`, without its keys, and `changefeed_keys`,
    a version of them, were last sent. `changefeed_changing`: the operator has begun to change it, and will resume it.
    """

    changefeed_synced: bool = False
    changefeed_job_name: str = ""
    changefeed_last_error: str = ""
    changefeed_state: str = ""
    changefeed_checkpoint: NullableTime = None
    changefeed_sink: str = ""
    changefeed_keys: str = ""
    changefeed_changing: bool = False

"""The document of `status` for programs; docs/kubectl-tidb.md explains each field.

Times are RFC 3339 in UTC. Fields are only ever added.
"""

import msgspec


class Part(msgspec.Struct, rename="camel"):
    """The base of all parts of the document."""


class LastSeen(Part):
    """The last observation of a silent data plane: `healthy` of `members`; silent since `until`."""

    members: int
    healthy: int
    until: str


class Component(Part):
    """A component: `ready` of `desired` pods are Ready, `updated` match the spec, `healthy` of `members` are healthy.

    While the operator cannot observe the members, `members` and `healthy` are null, and `last_seen` is the last
    observation.
    """

    name: str
    ready: int
    updated: int
    desired: int
    members: int | None
    healthy: int | None
    phase: str
    version: str
    image: str
    last_seen: LastSeen | None = None
    slots: list[int] = []
    """The ordinals that it leaves out."""


class Wait(Part):
    """Pending work of the whole cluster or a component. `needs_user`: it does not continue by itself."""

    of: str
    reason: str
    message: str
    since: str
    needs_user: bool


class Member(Part):
    """The data plane's view of a pod: a member, a store, a server, ...

    `state` is its word; `leads`: it is the leader or owner; `leaders`: regions that a store leads, else -1. Two states
    are not the data plane's: `unknown` while the operator cannot observe it (`healthy` is null), and `down` if the data
    plane has yet to notice that the pod does not run. Then `last_state` is its last word.
    """

    id: str
    state: str
    healthy: bool | None
    leads: bool = False
    leaders: int = -1
    last_state: str = ""


class Pod(Part):
    """A pod, or a missing one (`state` is Missing). For `commands` see docs/operations.md, "One pod"."""

    name: str
    component: str
    node: str
    state: str
    ready: bool
    restarts: int
    commands: list[str]
    member: Member | None


class Failure(Part):
    """A member or store that failover has replaced or will replace; `id` is its own, if it has one."""

    component: str
    pod: str
    id: str
    since: str
    host_down: bool


class Volume(Part):
    """Volumes of a component under change: `done` of `count` match the spec."""

    component: str
    name: str
    count: int
    done: int
    capacity: str
    storage_class: str


class Certificates(Part):
    """The operator's view of a cluster's certificates; see `kubectl tidb certs`."""

    valid: bool
    reason: str
    message: str


class Backup(Part):
    """A Backup. Unknown fields are empty; `checkpoint_ts` is a log backup's."""

    name: str
    mode: str
    phase: str
    message: str
    started: str
    completed: str
    size: str
    commit_ts: str
    checkpoint_ts: str


class Schedule(Part):
    """A BackupSchedule. `message` is when the next backup is due, or why there is none."""

    name: str
    schedule: str
    active: bool
    message: str
    last_backup: str
    last_backup_time: str


class Backups(Part):
    """`last_good` is the last completed snapshot or export; `others` are log backups and unfinished ones."""

    last_good: Backup | None
    others: list[Backup]
    schedules: list[Schedule]


class Monitor(Part):
    """A TidbMonitor of the cluster."""

    name: str
    ready: bool
    message: str


class Event(Part):
    """An event of the cluster; `time` is the last of `count`."""

    time: str
    type: str
    reason: str
    message: str
    count: int


class Unread(Part):
    """A resource that could not be read."""

    what: str
    why: str


class Summary(Part):
    """A cluster in one line; `reason` is the condition Ready's, and `ready_since` its time."""

    kind: str
    namespace: str
    name: str
    version: str
    created: str
    paused: bool
    ready: bool
    ready_since: str
    reason: str
    message: str
    components: list[Component]
    waits: list[Wait]


class Report(Summary):
    """A cluster in full, with sentences about ineffective settings and about the operator's changes that wait."""

    pods: list[Pod]
    failures: list[Failure]
    volumes: list[Volume]
    without_effect: list[str]
    pending: list[str]
    certificates: Certificates | None
    backups: Backups
    monitors: list[Monitor]
    events: list[Event]
    unread: list[Unread]

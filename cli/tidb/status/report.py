"""What `status` tells, as the document that programs read; docs/kubectl-tidb.md says what each field means.

Times are RFC 3339 in UTC. Fields are only ever added.
"""

import msgspec


class Part(msgspec.Struct, rename="camel"):
    """The base of all parts of the document."""


class LastSeen(Part):
    """The last answer of a data plane that does not answer now: `healthy` of `members`; no answer since `until`."""

    members: int
    healthy: int
    until: str


class Component(Part):
    """A component: `ready` of `desired` pods are Ready, `updated` as the spec wants, `healthy` of its `members`.

    While the operator cannot ask the members, `members` and `healthy` are null and `last_seen` has the last answer.
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


class Wait(Part):
    """What is not done: of the whole cluster, or of a component. `needs_user`: it does not go on by itself."""

    of: str
    reason: str
    message: str
    since: str
    needs_user: bool


class Member(Part):
    """What the data plane knows of a pod: a member, a store, a server, ...

    `state` is its word for it; `leads`: it is the leader, or the owner; `leaders`: regions that a store leads, else -1.
    Two states are not the data plane's: `unknown` while the operator cannot ask it (`healthy` is null), and `down`
    where it has yet to notice that the pod does not run. Then `last_state` is its last word.
    """

    id: str
    state: str
    healthy: bool | None
    leads: bool = False
    leaders: int = -1
    last_state: str = ""


class Pod(Part):
    """A pod, or one that should be there (`state` is Missing). `commands`: see docs/operations.md, "One pod"."""

    name: str
    component: str
    node: str
    state: str
    ready: bool
    restarts: int
    commands: list[str]
    member: Member | None


class Failure(Part):
    """A member or store that failover has replaced, or is about to; `id` is its own, if it has one."""

    component: str
    pod: str
    id: str
    since: str
    host_down: bool


class Volume(Part):
    """Volumes of a component that are being changed: `done` of `count` are as the spec wants them."""

    component: str
    name: str
    count: int
    done: int
    capacity: str
    storage_class: str


class Certificates(Part):
    """What the operator thinks of the certificates of a cluster that has some: see `kubectl tidb certs`."""

    valid: bool
    reason: str
    message: str


class Backup(Part):
    """A Backup. What is not known yet is empty; `checkpoint_ts` is that of a log backup."""

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
    """A BackupSchedule. `message` says when the next backup is due, or why none is made."""

    name: str
    schedule: str
    active: bool
    message: str
    last_backup: str
    last_backup_time: str


class Backups(Part):
    """`last_good` is the snapshot or export that was completed last; `others` are log backups and what is not done."""

    last_good: Backup | None
    others: list[Backup]
    schedules: list[Schedule]


class Monitor(Part):
    """A TidbMonitor of the cluster."""

    name: str
    ready: bool
    message: str


class Event(Part):
    """An event of the cluster; `time` is that of the last of `count`."""

    time: str
    type: str
    reason: str
    message: str
    count: int


class Unread(Part):
    """What could not be read, and is left out."""

    what: str
    why: str


class Summary(Part):
    """A cluster in one line; `reason` is that of the condition Ready, and `ready_since` its time."""

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
    """A cluster at one glance; `without_effect` are sentences on what its user has written in vain."""

    pods: list[Pod]
    failures: list[Failure]
    volumes: list[Volume]
    without_effect: list[str]
    certificates: Certificates | None
    backups: Backups
    monitors: list[Monitor]
    events: list[Event]
    unread: list[Unread]

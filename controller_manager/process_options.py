"""The options of every process with controllers: from the command line, the environment, or the calling code."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from controller_manager.debugging import loopback_address
from controller_manager.flag_parser import FlagParser, address, parse_count, parse_rate, parse_workers
from controller_manager.go_values import parse_duration
from kube.resources import Resource
from ports.observation import always, is_observing

DEFAULT_QPS = 50.0
DEFAULT_BURST = 100

_ELECTION_OF_SHARDS = {"leader_lease_duration": 10.0, "leader_renew_deadline": 7.0, "leader_retry_period": 2.0}
"""The default times with shards: shorter, because a process that takes a shard over must first sync all of
its objects.
"""

_CLOCK_DRIFT = 1.2
"""The renew deadline must exceed this many retry periods, so that one late retry does not cost the lease (LE-10)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessOptions:
    """Durations are in seconds.

    `name` is the program's: the source of events, and the Lease if `lease_name` is empty. `namespace` limits its
    informers; empty means no limit. `lease_namespace` is the Lease's, by default the namespace of the kubeconfig's
    context or of the service account; `lease_annotations` are written to it. `sees_other_leases`: watch the Leases of
    the same name in other namespaces. `observe`: write nothing, and need no Lease. `shards`: the number of Leases over
    which its instances divide the objects. `kubeconfig` empty: the pod's service account.
    """

    name: str
    user_agent: str = ""
    kubeconfig: str = ""
    namespace: str = ""
    lease_name: str = ""
    lease_namespace: str = ""
    lease_annotations: Mapping[str, str] = field(default_factory=dict)
    sees_other_leases: bool = False
    workers: int = 5
    resync_duration: float = 600.0
    kube_client_qps: float = DEFAULT_QPS
    kube_client_burst: int = DEFAULT_BURST
    drain_timeout: float = 30.0
    leader_lease_duration: float = 15.0
    leader_renew_deadline: float = 10.0
    leader_retry_period: float = 2.0
    metrics_addr: str = ":6060"
    debug_addr: str = ""
    observe: bool = False
    shards: int = 1
    v: int = 0
    instead: Mapping[Resource, Resource] = field(default_factory=dict)
    """The resources that clients and informers address, by those that code names."""

    @property
    def lease(self) -> str:
        """The name of the Lease."""
        return self.lease_name or self.name

    @property
    def observes(self) -> Callable[[], bool]:
        """Returns True if the current work must not change anything: all work, or work for observed objects."""
        return always if self.observe else is_observing


class Election(Protocol):
    """Durations of the election in seconds (LE-10)."""

    @property
    def leader_lease_duration(self) -> float:
        """How long other processes wait before they take over."""

    @property
    def leader_renew_deadline(self) -> float:
        """How long a leader tries to renew."""

    @property
    def leader_retry_period(self) -> float:
        """The pause between two tries."""


def parse_process_options(name: str, argv: Sequence[str], environ: Mapping[str, str], version: str) -> ProcessOptions:
    """Options of a program from its arguments (without the program name) and the environment.

    Raises SystemExit: code 2 after a message on stderr with flag, value and way out; code 0 after `-version` and
    `-help`.
    """
    flags = FlagParser(name, version, ProcessOptions)
    flags.flag("namespace", str, "look at this namespace only (default: at all)")
    flags.flag("lease-name", str, f"name of the Lease that instances compete for (default {name})")
    flags.flag("lease-namespace", str, "its namespace (default: $NAMESPACE, else the connection's)")
    declare_process_flags(flags)
    given = {"lease_namespace": environ.get("NAMESPACE", "")} | completed(flags.parse(argv), environ)
    options = ProcessOptions(name=name, **given)
    for problem in election_problems(options):
        flags.refuse(problem)
    return options


def declare_process_flags(flags: FlagParser) -> None:
    """The flags that every program has."""
    flags.flag("workers", parse_workers, "workers per controller")
    flags.flag("kubeconfig", str, "kubeconfig file (default: $KUBECONFIG, else the pod's service account)")
    flags.flag("resync-duration", parse_duration, "how often every object is reconciled without an event")
    flags.flag("kube-client-qps", parse_rate, "maximum requests per second to the Kubernetes API; 0 means the default")
    flags.flag("kube-client-burst", parse_count, "maximum burst of requests to the Kubernetes API; 0 means the default")
    flags.flag("drain-timeout", parse_duration, "how long running reconciles may take to finish at shutdown")
    flags.flag(
        "leader-lease-duration",
        parse_duration,
        "how long other candidates wait before they take over a lease that is not renewed; with -shards 10s by default",
    )
    flags.flag(
        "leader-renew-deadline",
        parse_duration,
        "how long the leader retries a renewal before it gives up leadership; with -shards 7s by default",
    )
    flags.flag("leader-retry-period", parse_duration, "pause between attempts to acquire or renew the lease")
    flags.flag("metrics-addr", address, "address of /metrics, /healthz and /readyz")
    flags.flag(
        "debug-addr",
        loopback_address,
        "address on loopback of /debug/threads and /debug/profile?seconds=N, such as 127.0.0.1:6061 (default: none)",
    )
    flags.switch("observe", "write nothing; report what would be written, in the log and in a metric")
    flags.flag("v", parse_count, "log verbosity; 4 is debug", "-v")


def completed(given: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, Any]:
    """The values of flags, completed from the environment and by dependent defaults."""
    divided = given.get("shards", 1) > 1 and not _ELECTION_OF_SHARDS.keys() & given.keys()
    return {
        "kubeconfig": environ.get("KUBECONFIG", ""),
        **(_ELECTION_OF_SHARDS if divided else {}),
        **given,
        # v1.6 passes 0 to its client library, which then uses its own default
        "kube_client_qps": given.get("kube_client_qps") or DEFAULT_QPS,
        "kube_client_burst": given.get("kube_client_burst") or DEFAULT_BURST,
    }


def election_problems(options: Election) -> Iterator[str]:
    """Why leader election cannot work with these periods."""
    if options.leader_lease_duration < 1:
        yield "--leader-lease-duration must be at least 1s"
    if options.leader_lease_duration <= options.leader_renew_deadline:
        yield "--leader-lease-duration must be greater than --leader-renew-deadline"
    if options.leader_renew_deadline <= _CLOCK_DRIFT * options.leader_retry_period:
        yield f"--leader-renew-deadline must be greater than {_CLOCK_DRIFT} times --leader-retry-period"
    if options.leader_retry_period <= 0:
        yield "--leader-retry-period must be greater than 0"

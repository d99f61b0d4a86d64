"""The command line of the controller-manager: v1.6's flags, and three of our own (scheduler-deployment.md 3.1).

As in Go, one dash is as good as two, and a boolean flag needs no value. Where v1.6 differs: an unknown feature is an
error, the client throttle defaults to 50/100 (OP-6), and klog's flags for log files are accepted without effect.
"""

import argparse
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TypeVar

from apis.components import component_names
from controller_manager.addresses import parse_address
from controller_manager.features import FeatureGates, format_features, parse_features
from controller_manager.go_values import format_duration, parse_bool, parse_duration
from kube.resources import NODES, PERSISTENT_VOLUMES, STORAGE_CLASSES, Resource

_T = TypeVar("_T")

_DEFAULT_QPS = 50.0
_DEFAULT_BURST = 100

_CLOCK_DRIFT = 1.2
"""The renew deadline must exceed this many retry periods, so that one late retry does not cost the lease (LE-10)."""

_WITHOUT_EFFECT = (
    "add_dir_header",
    "alsologtostderr",
    "log_backtrace_at",
    "log_dir",
    "log_file",
    "log_file_max_size",
    "logtostderr",
    "one_output",
    "skip_headers",
    "skip_log_headers",
    "stderrthreshold",
    "vmodule",
)
"""klog's flags: logs always go to stderr."""

_REPLACEABLE_OF_DM = ("dm-master", "dm-worker")
"""Components of DM clusters, which the table of components does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the process was told. Durations are seconds."""

    namespace: str = ""
    """Where the operator itself runs: its Lease, and all it manages when not cluster-scoped (env NAMESPACE).

    Empty: the namespace of the kubeconfig's context or of the service account.
    """
    helm_release: str = ""
    """Set when several operators share a namespace (env HELM_RELEASE)."""
    kubeconfig: str = ""
    """Empty: the pod's service account."""

    workers: int = 5
    cluster_scoped: bool = True
    cluster_permission_node: bool = False
    cluster_permission_pv: bool = False
    cluster_permission_sc: bool = False
    selector: str = ""
    features: FeatureGates = field(default_factory=FeatureGates)
    test_mode: bool = False

    auto_failover: bool = True
    pd_failover_period: float = 300.0
    tikv_failover_period: float = 300.0
    tidb_failover_period: float = 300.0
    tiflash_failover_period: float = 300.0
    dm_master_failover_period: float = 300.0
    dm_worker_failover_period: float = 300.0
    detect_node_failure: bool = False
    pod_hard_recovery_period: float = 86400.0

    resync_duration: float = 30.0
    kube_client_qps: float = _DEFAULT_QPS
    kube_client_burst: int = _DEFAULT_BURST
    drain_timeout: float = 30.0

    leader_lease_duration: float = 15.0
    leader_renew_deadline: float = 10.0
    leader_retry_period: float = 2.0
    leader_resource_lock: str = "leases"

    tidb_backup_manager_image: str = "pingcap/tidb-backup-manager:latest"
    tidb_discovery_image: str = "pingcap/tidb-operator:latest"

    metrics_addr: str = ":6060"
    v: int = 0

    @property
    def lease_name(self) -> str:
        """The Lease that operators of one release compete for (informers-workqueue.md 23)."""
        return "-".join(filter(None, ("tidb-controller-manager", self.helm_release)))

    @property
    def permitted(self) -> frozenset[Resource]:
        """The cluster-scoped resources that the process may read (scheduler-deployment.md 3.2)."""
        granted = {
            NODES: self.cluster_permission_node,
            PERSISTENT_VOLUMES: self.cluster_permission_pv,
            STORAGE_CLASSES: self.cluster_permission_sc,
        }
        return frozenset(resource for resource, flag in granted.items() if self.cluster_scoped or flag)


def parse(argv: Sequence[str], environ: Mapping[str, str], version: str) -> Options:
    """Options from the arguments (program name left out) and the environment.

    Raises SystemExit: code 2 after a message on stderr that names flag, value and way out; code 0 after `-version`
    and `-help`.
    """
    parser = _parser(version)
    given = vars(parser.parse_args([_with_two_dashes(argument) for argument in argv]))
    for name in _WITHOUT_EFFECT:
        given.pop(name, None)
    given.setdefault("kubeconfig", environ.get("KUBECONFIG", ""))
    # v1.6 passes 0 on to its client library, which then takes its own default
    given["kube_client_qps"] = given.get("kube_client_qps") or _DEFAULT_QPS
    given["kube_client_burst"] = given.get("kube_client_burst") or _DEFAULT_BURST
    options = Options(
        namespace=environ.get("NAMESPACE", ""),
        helm_release=environ.get("HELM_RELEASE", ""),
        **given,
    )
    for problem in _problems(options):
        parser.error(problem)
    return options


def flag_lines(options: Options) -> Iterator[str]:
    """Every flag with its value, in the form that users search the log for: `FLAG: --selector=""`."""
    for option in fields(options):
        if option.name not in {"namespace", "helm_release"}:
            yield f'FLAG: --{_flag_name(option.name)}="{_format(option.name, getattr(options, option.name))}"'


def _problems(options: Options) -> Iterator[str]:
    if options.leader_resource_lock != "leases":
        yield (
            f"--leader-resource-lock={options.leader_resource_lock} is not supported: Kubernetes dropped that kind of "
            "lock; use leases, which is the default"
        )
    if options.leader_lease_duration <= options.leader_renew_deadline:
        yield "--leader-lease-duration must be greater than --leader-renew-deadline"
    if options.leader_renew_deadline <= _CLOCK_DRIFT * options.leader_retry_period:
        yield f"--leader-renew-deadline must be greater than {_CLOCK_DRIFT} times --leader-retry-period"
    if options.leader_retry_period <= 0:
        yield "--leader-retry-period must be greater than 0"


def _parser(version: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tidb-controller-manager",
        usage="tidb-controller-manager [flags]    (-help lists them)",
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
        add_help=False,
    )
    parser.add_argument("-h", "--help", action="help", help="print this and exit")
    parser.add_argument("-V", "--version", action="version", version=version, help="print the version and exit")

    def flag(name: str, parse_value: Callable[[str], object], text: str) -> None:
        parser.add_argument(f"--{name}", type=_typed(parse_value), metavar="VALUE", help=text + _default(name))

    def switch(name: str, text: str) -> None:
        # as in Go, `-name` alone means true
        parser.add_argument(
            f"--{name}", type=_typed(parse_bool), nargs="?", const=True, metavar="BOOL", help=text + _default(name)
        )

    flag("workers", _workers, "workers per controller")
    switch("cluster-scoped", "manage all namespaces, not only that of the operator")
    switch("cluster-permission-node", "with -cluster-scoped=false: access to nodes is granted")
    switch("cluster-permission-pv", "with -cluster-scoped=false: access to persistent volumes is granted")
    switch("cluster-permission-sc", "with -cluster-scoped=false: access to storage classes is granted")
    flag("selector", str, "label selector on custom resources")
    flag("features", parse_features, "feature gates, such as VolumeModifying=true,VolumeReplacing=false")
    switch("test-mode", "for tests only")

    switch("auto-failover", "replace failed members")
    for component in (*component_names(lambda row: row.replaceable), *_REPLACEABLE_OF_DM):
        flag(f"{component}-failover-period", parse_duration, f"how long a failed {component} member is waited for")
    switch("detect-node-failure", "detect failed nodes and recover from them (experimental)")
    flag("pod-hard-recovery-period", parse_duration, "how long a member is down before its host counts as down")

    flag("resync-duration", parse_duration, "how often every object is looked at without an event")
    flag("kube-client-qps", _rate, "requests per second to the Kubernetes API; 0 is the default")
    flag("kube-client-burst", _count, "requests at once after a quiet time; 0 is the default")
    flag("drain-timeout", parse_duration, "how long running syncs may take when the process is told to stop")
    flag("kubeconfig", str, "connect with this file (default: $KUBECONFIG, else the pod's service account)")

    flag("leader-lease-duration", parse_duration, "how long others wait before they take over the lead")
    flag("leader-renew-deadline", parse_duration, "how long a leader tries to renew before it gives up")
    flag("leader-retry-period", parse_duration, "pause between two tries")
    flag("leader-resource-lock", str, "kind of lock; only leases")

    flag("tidb-backup-manager-image", str, "image of backup and restore jobs")
    flag("tidb-discovery-image", str, "image of the discovery service")

    flag("metrics-addr", _address, "address of /metrics, /healthz and /readyz")
    parser.add_argument("-v", "--v", type=_typed(_count), metavar="LEVEL", help="log verbosity; 4 is debug")
    for name in _WITHOUT_EFFECT:
        parser.add_argument(f"--{name}", nargs="?", help="accepted, without effect: logs go to stderr")
    return parser


def _with_two_dashes(argument: str) -> str:
    """`-workers=3` as `--workers=3`: with one dash, argparse would guess at abbreviations."""
    return f"-{argument}" if re.match(r"-[A-Za-z][\w-]", argument) else argument


def _typed(parse_value: Callable[[str], _T]) -> Callable[[str], _T]:
    """`parse_value` with its own error message, which argparse would replace."""

    def parse_argument(text: str) -> _T:
        try:
            return parse_value(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return parse_argument


def _workers(text: str) -> int:
    if (number := _count(text)) == 0:
        raise ValueError("0 workers would do nothing; at least 1 is needed")
    return number


def _count(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(f"{text!r} is not a whole number of at least 0")
    return int(text)


def _rate(text: str) -> float:
    if not re.fullmatch(r"\d+\.?\d*|\.\d+", text):
        raise ValueError(f"{text!r} is not a number of at least 0")
    return float(text)


def _address(text: str) -> str:
    parse_address(text)
    return text


def _default(flag: str) -> str:
    name = flag.replace("-", "_")
    value = next((option.default for option in fields(Options) if option.name == name), "")
    return f" (default {_format(name, value)})" if isinstance(value, (bool, int, float, str)) and value != "" else ""


def _format(name: str, value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case FeatureGates():
            return format_features(value)
        case float():
            return f"{value:g}" if name == "kube_client_qps" else format_duration(value)
        case _:
            return str(value)


def _flag_name(field_name: str) -> str:
    return field_name.replace("_", "-")

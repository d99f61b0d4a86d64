"""The command line of the controller-manager: v1.6's flags, and its own (scheduler-deployment.md 3.1).

Differences from v1.6: an unknown feature is an error; the client throttle defaults to 50/100 (OP-6); flags without an
effect here, e.g. klog's for log files, are accepted with a warning in the log.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields

from apis.components import component_names
from apis.consent import BY_CONSENT, ReferencePolicy, parse_policy
from controller_manager.features import FEATURES, FeatureGates, format_features, parse_features
from controller_manager.flag_parser import FlagParser, address, format_value, parse_shards
from controller_manager.go_values import parse_duration
from controller_manager.process_options import (
    DEFAULT_BURST,
    DEFAULT_QPS,
    completed,
    declare_process_flags,
    election_problems,
)
from informers.selectors import SelectorError, parse_selector
from kube.resources import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, NODES, PERSISTENT_VOLUMES, STORAGE_CLASSES, Resource
from member.backups.pods import MANAGER_IMAGE

PROGRAM = "tidb-controller-manager"

_OF_KLOG = (
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
"""klog's flags, without effect because logs always go to stderr."""

_NO_MODIFYING = (
    "-features=VolumeModifying=true has no effect without -cluster-permission-sc: the operator has to compare the "
    "parameters of storage classes"
)

_REPLACEABLE_OF_DM = ("dm-master", "dm-worker")
"""Components of DM clusters, which the table of components lacks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of the process. Durations are in seconds."""

    namespace: str = ""
    """The operator's own namespace: of its Lease, and of all managed objects if it is not cluster-scoped (env
    NAMESPACE).

    Empty: the namespace of the kubeconfig's context or of the service account.
    """
    helm_release: str = ""
    """Set if several operators share a namespace (env HELM_RELEASE)."""
    kubeconfig: str = ""
    """Empty: the pod's service account."""

    workers: int = 5
    cluster_scoped: bool = True
    cluster_permission_node: bool = False
    cluster_permission_pv: bool = False
    cluster_permission_sc: bool = False
    selector: str = ""
    features: FeatureGates = field(default_factory=FeatureGates)

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
    kube_client_qps: float = DEFAULT_QPS
    kube_client_burst: int = DEFAULT_BURST
    drain_timeout: float = 30.0

    leader_lease_duration: float = 15.0
    leader_renew_deadline: float = 10.0
    leader_retry_period: float = 2.0
    leader_resource_lock: str = "leases"

    tidb_backup_manager_image: str = MANAGER_IMAGE
    tidb_discovery_image: str = "pingcap/tidb-operator:latest"

    cross_namespace_references: ReferencePolicy = BY_CONSENT

    metrics_addr: str = ":6060"
    debug_addr: str = ""
    admission_webhook: str = ""
    """The ValidatingWebhookConfiguration of the webhook; empty: there is no webhook."""
    admission_webhook_addr: str = ":9443"
    observe: bool = False
    shards: int = 1
    v: int = 0
    without_effect: tuple[str, ...] = ()
    """A sentence about each given flag that has no effect."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """A sentence about each request that is ignored."""
        reads_classes = self.cluster_scoped or self.cluster_permission_sc
        is_vain = self.features.volume_modifying and not reads_classes
        return (*self.without_effect, *((_NO_MODIFYING,) if is_vain else ()))

    @property
    def lease_name(self) -> str:
        """The Lease for which operators of one release compete (informers-workqueue.md 23)."""
        return "-".join(filter(None, (PROGRAM, self.helm_release)))

    @property
    def permitted(self) -> frozenset[Resource]:
        """The cluster-scoped resources that the process may read (scheduler-deployment.md 3.2)."""
        granted = {
            CLUSTER_ROLES: False,
            CLUSTER_ROLE_BINDINGS: False,
            NODES: self.cluster_permission_node,
            PERSISTENT_VOLUMES: self.cluster_permission_pv,
            STORAGE_CLASSES: self.cluster_permission_sc,
        }
        return frozenset(resource for resource, flag in granted.items() if self.cluster_scoped or flag)


def parse(argv: Sequence[str], environ: Mapping[str, str], version: str) -> Options:
    """Options from the arguments (without the program name) and the environment.

    Raises SystemExit: code 2 after a message on stderr with flag, value and way out; code 0 after `-version` and
    `-help`.
    """
    flags = _flags(version)
    given = completed(flags.parse(argv), environ)
    options = Options(
        namespace=environ.get("NAMESPACE", ""),
        helm_release=environ.get("HELM_RELEASE", ""),
        **given,
    )
    for problem in _problems(options):
        flags.refuse(problem)
    return options


def described() -> Mapping[str, str]:
    """The description of each effective flag with its default, by its name without dashes."""
    return _flags("").described


def flag_lines(options: Options) -> Iterator[str]:
    """Every flag with its value, in the log format that users search for: `FLAG: --selector=""`."""
    for option in fields(options):
        if option.name not in {"namespace", "helm_release", "without_effect"}:
            value = _format(option.name, getattr(options, option.name))
            yield f'FLAG: --{option.name.replace("_", "-")}="{value}"'


def _problems(options: Options) -> Iterator[str]:
    if options.leader_resource_lock != "leases":
        yield (
            f"--leader-resource-lock={options.leader_resource_lock} is not supported: Kubernetes removed that kind of "
            "lock; use leases, which is the default"
        )
    yield from election_problems(options)


def _flags(version: str) -> FlagParser:
    flags = FlagParser(PROGRAM, version, Options)
    declare_process_flags(flags)
    flags.switch("cluster-scoped", "manage all namespaces, not only the operator's")
    flags.switch("cluster-permission-node", "with -cluster-scoped=false: access to nodes is granted")
    flags.switch("cluster-permission-pv", "with -cluster-scoped=false: access to persistent volumes is granted")
    flags.switch("cluster-permission-sc", "with -cluster-scoped=false: access to storage classes is granted")
    flags.flag("selector", _selector, "label selector on custom resources")
    flags.flag("shards", parse_shards, "divide the clusters among the replicas over so many Leases; 1: one leads")
    flags.flag("features", parse_features, "feature gates, such as VolumeReplacing=true; known: " + ", ".join(FEATURES))
    flags.without_effect("test-mode", "TiKV's evict-leader schedulers are removed without a pause", "false")

    flags.switch("auto-failover", "replace failed members")
    for component in (*component_names(lambda row: row.replaceable), *_REPLACEABLE_OF_DM):
        flags.flag(
            f"{component}-failover-period",
            parse_duration,
            f"how long to wait before a failed {component} member is replaced",
        )
    flags.switch("detect-node-failure", "detect failed nodes and recover from them (experimental)")
    flags.flag(
        "pod-hard-recovery-period", parse_duration, "how long a member must be down before its host is considered down"
    )

    flags.flag(
        "cross-namespace-references",
        parse_policy,
        "references into other namespaces: consent (of the owner, by annotation), allow, or pairs FROM:TO that need "
        "no consent, such as monitoring:*,backup:prod (default consent)",
    )
    flags.flag(
        "admission-webhook",
        str,
        "serve the admission webhook of this ValidatingWebhookConfiguration; its certificate is in the Secret of the "
        "same name (default: no webhook)",
    )
    flags.flag("admission-webhook-addr", address, "address of the admission webhook")
    flags.flag("leader-resource-lock", str, "kind of lock; only leases")
    flags.flag("tidb-backup-manager-image", str, "image of backup and restore jobs")
    flags.flag("tidb-discovery-image", str, "image of the discovery service")
    declare_log_flags(flags)
    return flags


def declare_log_flags(flags: FlagParser) -> None:
    """klog's flags for the destination and form of logs."""
    for name in _OF_KLOG:
        flags.without_effect(name, "logs go to stderr", "true" if name == "logtostderr" else "")


def _selector(text: str) -> str:
    """Check a label selector and return it unchanged. Raises ValueError."""
    try:
        parse_selector(text)
    except SelectorError as error:
        raise ValueError(f"{error}; write for example team=a,tier in (gold,silver),!canary") from None
    return text


def _format(name: str, value: object) -> str:
    return format_features(value) if isinstance(value, FeatureGates) else format_value(name, value)

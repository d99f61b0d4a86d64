"""The command line of `tidb-scheduler`: v1.6's flags, and its own for TLS and the connection (2.2)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from controller_manager.features import FeatureGates, parse_features
from controller_manager.flag_parser import FlagParser, address, parse_count, parse_rate
from controller_manager.flags import declare_log_flags
from controller_manager.process_options import DEFAULT_BURST, DEFAULT_QPS, completed
from scheduler.app import COMPONENT

PROGRAM = COMPONENT


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """`port` is the extender's port on all addresses; with `tls_cert_file` it serves HTTPS."""

    port: int = 10262
    features: FeatureGates = field(default_factory=FeatureGates)
    kubeconfig: str = ""
    kube_client_qps: float = DEFAULT_QPS
    kube_client_burst: int = DEFAULT_BURST
    metrics_addr: str = ":6060"
    tls_cert_file: str = ""
    tls_private_key_file: str = ""
    client_ca_file: str = ""
    v: int = 0
    without_effect: tuple[str, ...] = ()
    """A sentence about each given flag that has no effect."""

    @property
    def clients(self) -> Path | None:
        """The CA of client certificates, if clients must present one."""
        return Path(self.client_ca_file) if self.client_ca_file else None


def parse_options(argv: Sequence[str], environ: Mapping[str, str], version: str) -> Options:
    """Options from the arguments (without the program name) and the environment.

    Raises SystemExit: code 2 after a message on stderr with flag, value and way out; code 0 after `-version` and
    `-help`.
    """
    flags = FlagParser(PROGRAM, version, Options)
    flags.flag("port", parse_count, "port that kube-scheduler asks on")
    flags.flag("features", parse_features, "feature gates; the scheduler knows StableScheduling")
    flags.flag("kubeconfig", str, "kubeconfig file (default: $KUBECONFIG, else the pod's service account)")
    flags.flag("kube-client-qps", parse_rate, "maximum requests per second to the Kubernetes API; 0 means the default")
    flags.flag("kube-client-burst", parse_count, "maximum burst of requests to the Kubernetes API; 0 means the default")
    flags.flag("metrics-addr", address, "address of /metrics, /healthz and /readyz")
    flags.flag("tls-cert-file", str, "certificate; with it, set enableHTTPS for kube-scheduler")
    flags.flag("tls-private-key-file", str, "its key")
    flags.flag("client-ca-file", str, "CA that clients must have a certificate of")
    flags.flag("v", parse_count, "log verbosity; 4 is debug", "-v")
    declare_log_flags(flags)
    options = Options(**completed(flags.parse(argv), environ))
    if bool(options.tls_cert_file) != bool(options.tls_private_key_file):
        flags.refuse("--tls-cert-file and --tls-private-key-file belong together: give both, or none")
    if options.client_ca_file and not options.tls_cert_file:
        flags.refuse("--client-ca-file needs --tls-cert-file and --tls-private-key-file")
    return options

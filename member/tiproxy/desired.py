"""TiProxy's desired objects (objects.md 4.9, 6.4) and certificates (9.3): pure functions of a defaulted TidbCluster.

`security.cluster-tls` is for PD and TiDB's status port, `sql-tls` for SQL to TiDB, `server-tls` for SQL from clients,
`server-http-tls` for TiProxy's API.
"""

from dataclasses import dataclass

from apis import config, toml
from apis.accessor import component
from apis.component_specs import TiDBTLSClient, TiProxySpec
from apis.identity import SKIP_TLS_WHEN_CONNECT_TIDB, scheme, tls_enabled
from apis.tidbcluster import TidbCluster
from apis.toml import Table
from dataplane.addresses import PD_CLIENT_PORT
from dataplane.tiproxy import API_PORT, PEER_PORT, SQL_PORT
from kube.objects import Json
from member.naming import (
    cluster_client_secret,
    cluster_secret,
    member_name,
    peer_service,
    referenced_cluster,
    tidb_server_secret,
)
from member.objects import pod, volumes
from member.objects import stateful_set as stateful_sets
from member.objects.config_map import CONFIG_FILE, STARTUP_SCRIPT, Content
from member.objects.services import end_user, peer, port
from member.startscript import options
from member.startscript.fragments import assemble, fragment

_OWN = "tiproxy-tls"
_CLUSTER = "cluster-client-tls"
_SERVER = "tidb-server-tls"
_SQL = "tidb-client-tls"


@dataclass(frozen=True, slots=True)
class Certificate:
    """A Secret in a volume of TiProxy's pods, mounted below `/var/lib` at `place`."""

    volume: str
    secret: str
    place: str

    @property
    def directory(self) -> str:
        """The directory with the certificate's files."""
        return volumes.tls_directory(self.place)

    @property
    def mount(self) -> Json:
        """The mount in the container."""
        return volumes.mount(self.volume, self.directory, read_only=True)


def certificates(tc: TidbCluster) -> list[Certificate]:
    """The mounted certificates, in order."""
    spec, cluster, clients = _spec(tc), tls_enabled(tc), _clients(tc)
    found = []
    if cluster:
        found.append(Certificate(_CLUSTER, cluster_client_secret(tc), _CLUSTER))
    if cluster and (_is_v1(spec) or clients is None):
        place = _OWN if _is_v1(spec) else "tiproxy-http-server-tls"
        found.append(Certificate(_OWN, cluster_secret(tc, "tiproxy"), place))
    if clients is not None:
        found.append(Certificate(_SERVER, tidb_server_secret(tc), "tiproxy-server-tls"))
        if not _is_v1(spec) and _uses_tls_to_tidb(tc):
            secret = spec.tls_client_secret_name or f"{tc.metadata.name}-tidb-client-secret"
            found.append(Certificate(_SQL, secret, "tiproxy-sql-tls"))
    return found


def configure(tc: TidbCluster, tables: Table) -> None:
    """Set the certificates' paths in TiProxy's configuration."""
    spec, clients = _spec(tc), _clients(tc)
    at = {certificate.volume: certificate.directory for certificate in certificates(tc)}
    if tls_enabled(tc):
        _put(tables, "cluster-tls", at[_OWN if _is_v1(spec) else _CLUSTER])
    if clients is not None:
        _put(tables, "server-tls", at[_SERVER], ca=not _is_v1(spec))
        config.put_if_absent(tables, "security.server-tls.skip-ca", True)
        if _uses_tls_to_tidb(tc):
            _configure_sql(tables, clients, at.get(_SQL, ""), at[_SERVER])
    if own := _of_the_api(tc, at):
        _put(tables, "server-http-tls", own)
        config.put(tables, "security.server-http-tls.skip-ca", True)


def serves_api_with_tidbs_certificate(tc: TidbCluster) -> bool:
    """True if TiProxy's API uses the certificate of TiDB's MySQL port, which may lack TiProxy's names."""
    return _clients(tc) is not None and not _is_v1(_spec(tc))


def _of_the_api(tc: TidbCluster, at: dict[str, str]) -> str:
    """The directory of the API's certificate; empty if the API uses plain HTTP.

    For the layout `v1` without cluster TLS, v1.6 configures files that do not exist.
    """
    return at[_SERVER] if serves_api_with_tidbs_certificate(tc) else at.get(_OWN, "")


def _configure_sql(tables: Table, clients: TiDBTLSClient, own: str, server: str) -> None:
    skips_ca = config.get(tables, "security.sql-tls.skip-ca") is None and clients.skip_internal_client_ca
    if skips_ca:
        config.put(tables, "security.sql-tls.skip-ca", True)
    else:
        config.put(tables, "security.sql-tls.ca", f"{own or server}/ca.crt")
    if own and not clients.disable_client_authn:
        _put(tables, "sql-tls", own, ca=False)


def _put(tables: Table, section: str, directory: str, *, ca: bool = True) -> None:
    files = {"ca": "ca.crt"} if ca else {}
    for key, file in (files | {"cert": "tls.crt", "key": "tls.key"}).items():
        config.put(tables, f"security.{section}.{key}", f"{directory}/{file}")


def _clients(tc: TidbCluster) -> TiDBTLSClient | None:
    """The TLS settings of TiDB's MySQL port; None if it has no TLS."""
    tidb = tc.spec.tidb
    chosen = tidb.tls_client if tidb else None
    return chosen if chosen and chosen.enabled else None


def _uses_tls_to_tidb(tc: TidbCluster) -> bool:
    return _spec(tc).ssl_enable_tidb or SKIP_TLS_WHEN_CONNECT_TIDB not in tc.metadata.annotations


def _is_v1(spec: TiProxySpec) -> bool:
    return spec.cert_layout == "v1"


def _spec(tc: TidbCluster) -> TiProxySpec:
    spec = component(tc, "tiproxy").spec
    assert isinstance(spec, TiProxySpec)
    return spec


_DIRECTORY = "/etc/proxy"
_METRICS = "/api/metrics"


def services(tc: TidbCluster) -> list[Json]:
    """TiProxy's Services: one for clients, one for the proxies among themselves.

    v1.6 also sends clients to pods that are not Ready, e.g. to terminating ones.
    """
    ports = [port("tiproxy-api", API_PORT), port("tiproxy-sql", SQL_PORT)]
    among_members = [port("tiproxy-api", API_PORT), port("tiproxy-peer", PEER_PORT)]
    return [end_user(tc, "tiproxy", {"type": "NodePort", "ports": ports}, {}, {}), peer(tc, "tiproxy", among_members)]


def content(tc: TidbCluster) -> Content:
    """The texts of TiProxy's ConfigMap. Raises InvalidField for a configuration that validation rejects."""
    tables = component(tc, "tiproxy").config_tables()
    config.put(tables, "workdir", "/var/lib/tiproxy/work")
    config.put(tables, "proxy.pd-addrs", _pd_address(tc))
    config.put_if_absent(tables, "proxy.require-backend-tls", False)
    configure(tc, tables)
    texts = {CONFIG_FILE: toml.dumps(tables), STARTUP_SCRIPT: start_script(tc)}
    return Content(texts, start_script_options(tc))


def start_script(tc: TidbCluster) -> str:
    """The text of `start.sh` (7.7), which is the same in both script versions."""
    return assemble(
        "#!/bin/sh",
        "Starts TiProxy in its pod. Made by tidb-operator from the TidbCluster.",
        fragment("prologue"),
        options.names(tc, "tiproxy", literal=True),
        fragment("start", __package__),
    )


def start_script_options(tc: TidbCluster) -> Json:
    """The options of the spec that affect the script."""
    return {"clusterDomain": tc.spec.cluster_domain} if tc.spec.cluster_domain else {}


def _pd_address(tc: TidbCluster) -> str:
    """PD's address. The Service of a cluster elsewhere has its full name, which v1.6 omits."""
    reference = referenced_cluster(tc)
    if reference is None:
        return f"{member_name(tc, 'pd')}:{PD_CLIENT_PORT}"
    domain = f".{reference.cluster_domain}" if reference.cluster_domain else ""
    namespace = reference.namespace or tc.metadata.namespace
    return f"{reference.name}-pd.{namespace}.svc{domain}:{PD_CLIENT_PORT}"


def stateful_set(tc: TidbCluster, config_map_name: str) -> Json:
    """TiProxy's StatefulSet, whose pods read the ConfigMap of that name."""
    own = component(tc, "tiproxy")
    spec, secrets = own.spec, certificates(tc)
    assert isinstance(spec, TiProxySpec)
    container = pod.main_container(
        own,
        command=["/bin/sh", f"{_DIRECTORY}/start.sh"],
        ports=[
            pod.container_port("tiproxy", SQL_PORT),
            pod.container_port("tiproxy-api", API_PORT),
            pod.container_port("tiproxy-peer", PEER_PORT),
        ],
        mounts=[
            volumes.mount("config", _DIRECTORY, read_only=True),
            volumes.ANNOTATIONS_MOUNT,
            *(secret.mount for secret in secrets),
            *volumes.storage_volume_mounts("tiproxy", spec.storage_volumes),
            *spec.additional_volume_mounts,
        ],
        builtin_env=[
            pod.POD_NAME,
            pod.NAMESPACE,
            pod.env("HEADLESS_SERVICE_NAME", peer_service(tc, "tiproxy")),
        ],
    )
    if handler := _readiness(tc, spec):
        container["readinessProbe"] = pod.readiness_probe(handler, spec.readiness_probe)
    template = pod.pod_template(
        own,
        containers=[container],
        volumes=[
            _files(config_map_name),
            volumes.ANNOTATIONS_VOLUME,
            *(volumes.secret_volume(secret.volume, secret.secret) for secret in secrets),
        ],
        metrics_port=API_PORT,
        metrics_path=_METRICS,
    )
    return stateful_sets.stateful_set(own, template=template, claims=volumes.storage_volume_claims("tiproxy", spec))


def _readiness(tc: TidbCluster, spec: TiProxySpec) -> Json:
    """The handler of the probe that the spec asks for; empty for none, as in v1.7 without a type (TPX-1)."""
    kind = spec.readiness_probe.type if spec.readiness_probe else None
    if kind == "tcp":
        return pod.tcp_handler(SQL_PORT)
    if kind != "command":
        return {}
    words = ["curl", f"{scheme(tc)}://127.0.0.1:{API_PORT}/api/debug/health", "--fail", "--location"]
    if tls_enabled(tc):
        ca, certificate, key = volumes.certificate_files(_CLUSTER)
        words += ["--cacert", ca, "--cert", certificate, "--key", key]
    return pod.command_handler(*words)


def as_built_by_v16(tc: TidbCluster, made: Json) -> Json:
    """The same without the readiness probe, which v1.6 ignores."""
    there = made["spec"]["template"]["spec"]["containers"]
    own = {"readinessProbe"} if _readiness(tc, _spec(tc)) else set()
    containers = [
        {key: value for key, value in each.items() if each["name"] != "tiproxy" or key not in own} for each in there
    ]
    return pod.with_other_fields(made, {"containers": containers})


def _files(config_map: str) -> Json:
    items = [{"key": CONFIG_FILE, "path": "proxy.toml"}, {"key": STARTUP_SCRIPT, "path": "start.sh"}]
    return {"name": "config", "configMap": {"name": config_map, "items": items}}

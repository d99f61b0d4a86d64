"""TiProxy's certificates: their Secrets, paths and purposes (objects.md 9.3). Pure.

`security.cluster-tls` is for PD and TiDB's status port, `sql-tls` for SQL to TiDB, `server-tls` for SQL from clients,
`server-http-tls` for TiProxy's API.
"""

from dataclasses import dataclass

from apis import config
from apis.accessor import component
from apis.component_specs import TiDBTLSClient, TiProxySpec
from apis.identity import SKIP_TLS_WHEN_CONNECT_TIDB, tls_enabled
from apis.tidbcluster import TidbCluster
from apis.toml import Table
from kube.objects import Json
from member.naming import cluster_client_secret, cluster_secret, tidb_server_secret
from member.objects import volumes

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
    at = {each.volume: each.directory for each in certificates(tc)}
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

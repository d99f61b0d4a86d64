"""A TidbDashboard's desired objects: Service, StatefulSet, certificate copies (other-resources.md 4).

Pure functions.
"""

from apis.accessor import find
from apis.dashboards import TidbDashboard
from apis.identity import speaks_sql_tls, tls_enabled
from apis.tidbcluster import TidbCluster
from kube.objects import Json
from member.naming import cluster_client_secret, pd_url
from member.objects import single_pod
from member.objects.pod import without_unset
from member.objects.services import port
from member.objects.single_pod import Server
from member.objects.volumes import certificate_files, certificate_mounts, certificate_volumes

NAME = "tidb-dashboard"
PORT = 12333
_DATA, _DIRECTORY = "tidb-dashboard-data", "/var/lib/tidb-dashboard-data"
_CLUSTER_TLS, _SQL_TLS = "cluster-client-tls", "mysql-client-tls"


def own_labels(dashboard: TidbDashboard) -> dict[str, str]:
    """The labels of all its objects."""
    return single_pod.resource_labels(NAME, dashboard.metadata.name, NAME)


def stateful_set_name(dashboard: TidbDashboard) -> str:
    """The name of the StatefulSet: `<td>-tidb-dashboard`."""
    return f"{dashboard.metadata.name}-{NAME}"


def certificates(dashboard: TidbDashboard, tc: TidbCluster) -> dict[str, tuple[str, str]]:
    """The copied Secret and its source beside the TidbCluster, by the name of the certificate volume."""
    name, found = dashboard.metadata.name, {}
    if tls_enabled(tc):
        found[_CLUSTER_TLS] = (f"{name}-tc-cluster-client-tls", cluster_client_secret(tc))
    if speaks_sql_tls(tc):
        found[_SQL_TLS] = (f"{name}-tc-mysql-client-tls", f"{tc.metadata.name}-tidb-client-secret")
    return found


def service(dashboard: TidbDashboard) -> Json:
    """The Service for browsers."""
    chosen, selector = dashboard.spec.service, own_labels(dashboard)
    spec = without_unset(
        {
            "type": chosen.type or "ClusterIP",
            "ports": [port(chosen.port_name or NAME, PORT)],
            "publishNotReadyAddresses": True,
            "selector": selector,
            "clusterIP": chosen.cluster_ip,
            "loadBalancerIP": chosen.load_balancer_ip,
            "loadBalancerClass": chosen.load_balancer_class,
            "loadBalancerSourceRanges": chosen.load_balancer_source_ranges,
            "ipFamilyPolicy": "PreferDualStack" if dashboard.spec.prefer_ipv6 else None,
        }
    )
    metadata = without_unset({"labels": {**chosen.labels, **selector}, "annotations": chosen.annotations})
    return {"metadata": {"name": _service_name(dashboard)} | metadata, "spec": spec}


def stateful_set(dashboard: TidbDashboard, tc: TidbCluster) -> Json:
    """The StatefulSet with the dashboard's pod."""
    spec = dashboard.spec
    copies = {volume: copy for volume, (copy, _) in certificates(dashboard, tc).items()}
    server = Server(
        name=NAME,
        port=PORT,
        image=single_pod.image_of(spec, spec.base_image),
        args=_arguments(dashboard, tc),
        mounts=[
            *single_pod.data_mounts(NAME, _DATA, _DIRECTORY, spec.storage_volumes),
            *certificate_mounts(copies),
        ],
        volumes=certificate_volumes(copies),
        claims=single_pod.claims(NAME, _DATA, spec, spec.storage_class_name, spec.storage_volumes),
    )
    name, service_name = stateful_set_name(dashboard), _service_name(dashboard)
    return single_pod.stateful_set(spec, server, name, service_name, own_labels(dashboard))


def _service_name(dashboard: TidbDashboard) -> str:
    return f"{stateful_set_name(dashboard)}-exposed"


def _arguments(dashboard: TidbDashboard, tc: TidbCluster) -> list[str]:
    spec, given, pd = dashboard.spec, certificates(dashboard, tc), find(tc, "pd")
    arguments = [
        f"-h={'127.0.0.1' if spec.listen_on_localhost_only else '0.0.0.0'}",
        f"-p={PORT}",
        f"--data-dir={_DIRECTORY}",
        f"--temp-dir={_DIRECTORY}",
        f"--path-prefix={spec.path_prefix or ''}",
        f"--feature-version={tc.spec.version or (pd.version if pd else '')}",
        f"--experimental={_flag(bool(spec.experimental))}",
        f"--telemetry={_flag(spec.telemetry is not False)}",
    ]
    if spec.disable_key_visualizer:
        arguments.append("--keyviz=false")
    arguments.append(f"--pd={pd_url(tc)}")
    for volume, kind in ((_CLUSTER_TLS, "cluster"), (_SQL_TLS, "tidb")):
        if volume in given:
            names = (f"--{kind}-ca", f"--{kind}-cert", f"--{kind}-key")
            arguments += [f"{name}={file}" for name, file in zip(names, certificate_files(volume), strict=True)]
    return arguments


def _flag(value: bool) -> str:
    return "true" if value else "false"

"""A TidbInitializer's desired objects: its ConfigMap and its Job (other-resources.md 2.3). Pure functions."""

import importlib.resources
from typing import TYPE_CHECKING

from apis.identity import skips_sql_authority, speaks_sql_tls
from apis.initializers import TidbInitializer
from apis.tidbcluster import TidbCluster
from dataplane.addresses import TIDB_SERVER_PORT
from kube.objects import Json
from kube.semantic import semantically_equal
from member import labels
from member.naming import member_name, peer_service
from member.objects.pod import env, without_unset
from member.objects.volumes import config_map_volume, mount, secret_volume
from member.startscript.fragments import assemble, fragment, settings

if TYPE_CHECKING:
    from member.initializer.initialize import Settings

COMPONENT = "initializer"
INITIALIZER_LABEL = "tidb.pingcap.com/initializer"
RUN = "tidb.pingcap.com/run"
"""The annotation of a TidbInitializer that makes it run again when its value changes. v1.6 does not have it."""
MAIN_CONTAINER = "mysql-client"
INIT_SQL = "init-sql"

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_PASSWORDS = "/etc/tidb/password"
_TLS = "/var/lib/tidb-client-tls"
_SQL = "/data"
_MAIN_VOLUME, _MAIN = "start-script", "/usr/local/bin/start_script.py"
_WAIT_VOLUME, _WAIT = "init-start-script", "/usr/local/bin/init_start_script.sh"
_MOST_TRIES = 3600


def object_name(initializer: TidbInitializer) -> str:
    """The name of ConfigMap and Job: `<tc>-tidb-initializer`."""
    return f"{initializer.spec.cluster.name}-tidb-initializer"


def own_labels(initializer: TidbInitializer) -> dict[str, str]:
    """The labels of all its objects, the user's included."""
    name = initializer.metadata.name
    own = {labels.COMPONENT: COMPONENT, labels.MANAGED_BY: labels.TIDB_OPERATOR, labels.INSTANCE: name}
    return {**initializer.metadata.labels, **own, INITIALIZER_LABEL: name}


def secret_names(initializer: TidbInitializer, tc: TidbCluster) -> list[str]:
    """The Secrets that the pod mounts."""
    given = (_tls_secret(initializer, tc), initializer.spec.password_secret or "")
    return [name for name in given if name]


def config_map(initializer: TidbInitializer, tc: TidbCluster, *, run: str | None) -> Json:
    """The ConfigMap with the scripts, and with inline SQL; `run` is the annotation of the run, None without one."""
    data = {_WAIT_VOLUME: _wait_script(tc), _MAIN_VOLUME: _main_script(initializer, tc)}
    if initializer.spec.init_sql is not None:
        data[INIT_SQL] = initializer.spec.init_sql
    metadata = _metadata(initializer)
    others = {key: value for key, value in metadata.pop("annotations", {}).items() if key != RUN}
    annotations = others | ({RUN: run} if run is not None else {})
    return {"metadata": metadata | without_unset({"annotations": annotations}), "data": data}


def job(initializer: TidbInitializer, tc: TidbCluster) -> Json:
    """The Job: a single pod without retries."""
    pod = without_unset(
        {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "initContainers": [_container(initializer, "wait", ["sh", _WAIT], [_script_mount(_WAIT_VOLUME, _WAIT)])],
            "containers": [_container(initializer, MAIN_CONTAINER, ["python", _MAIN], _mounts(initializer, tc))],
            "volumes": _volumes(initializer, tc),
            **_where_it_runs(initializer),
        }
    )
    metadata = _metadata(initializer)
    template = {key: value for key, value in metadata.items() if key != "name"}
    return {"metadata": metadata, "spec": {"backoffLimit": 0, "template": {"metadata": template, "spec": pod}}}


def differs(job: Json, initializer: TidbInitializer) -> bool:
    """True if an existing Job differs from the spec in cluster, image, resources, or placement."""
    pod = job["spec"]["template"]["spec"]
    (main,) = pod["containers"]
    made = ((main, _what_it_runs(initializer)), (pod, _where_it_runs(initializer)))
    is_of_cluster = job["metadata"]["name"] == object_name(initializer)
    return not (is_of_cluster and all(_says(part, wanted) for part, wanted in made))


def _says(part: Json, wanted: Json) -> bool:
    return semantically_equal(without_unset({key: part.get(key) for key in wanted}), without_unset(wanted))


def _what_it_runs(initializer: TidbInitializer) -> Json:
    """The compared fields of each container."""
    return {"image": initializer.spec.image, "resources": initializer.spec.resources}


def _where_it_runs(initializer: TidbInitializer) -> Json:
    """The compared fields of the pod."""
    spec = initializer.spec
    return {
        "imagePullSecrets": spec.image_pull_secrets,
        "serviceAccountName": spec.service_account_name,
        "securityContext": spec.pod_security_context,
        "tolerations": spec.tolerations,
        "nodeSelector": spec.node_selector,
    }


def has_sql(initializer: TidbInitializer) -> bool:
    """True if the spec has SQL to run."""
    return bool(initializer.spec.init_sql_config_map) or initializer.spec.init_sql is not None


def _metadata(initializer: TidbInitializer) -> Json:
    annotations = {key: value for key, value in initializer.metadata.annotations.items() if key != _LAST_APPLIED}
    given = {"labels": own_labels(initializer), "annotations": annotations}
    return {"name": object_name(initializer), **without_unset(given)}


def _container(initializer: TidbInitializer, name: str, command: list[str], mounts: list[Json]) -> Json:
    spec = initializer.spec
    return without_unset(
        {
            "name": name,
            "imagePullPolicy": spec.image_pull_policy,
            "command": command,
            "env": [env("TZ", spec.timezone)] if spec.timezone else [],
            "volumeMounts": mounts,
            **_what_it_runs(initializer),
        }
    )


def _mounts(initializer: TidbInitializer, tc: TidbCluster) -> list[Json]:
    spec = initializer.spec
    return [
        *([mount("tidb-client-tls", _TLS, read_only=True)] if _tls_secret(initializer, tc) else []),
        _script_mount(_MAIN_VOLUME, _MAIN),
        *([mount("password", _PASSWORDS, read_only=True)] if spec.password_secret else []),
        *([mount(INIT_SQL, _SQL, read_only=True)] if has_sql(initializer) else []),
    ]


def _volumes(initializer: TidbInitializer, tc: TidbCluster) -> list[Json]:
    spec, name, secret = initializer.spec, object_name(initializer), _tls_secret(initializer, tc)
    return [
        *([secret_volume("tidb-client-tls", secret)] if secret else []),
        config_map_volume(_MAIN_VOLUME, name, _MAIN_VOLUME, "start_script.py"),
        config_map_volume(_WAIT_VOLUME, name, _WAIT_VOLUME, "init_start_script.sh"),
        *([secret_volume("password", spec.password_secret)] if spec.password_secret else []),
        *(
            [config_map_volume(INIT_SQL, spec.init_sql_config_map or name, INIT_SQL, "init.sql")]
            if has_sql(initializer)
            else []
        ),
    ]


def _script_mount(volume: str, path: str) -> Json:
    return mount(volume, path, read_only=True) | {"subPath": path.rpartition("/")[2]}


def _tls_secret(initializer: TidbInitializer, tc: TidbCluster) -> str:
    """The Secret with the client certificate; empty without TLS."""
    if not speaks_sql_tls(tc):
        return ""
    return initializer.spec.tls_client_secret_name or f"{tc.metadata.name}-tidb-client-secret"


def _wait_script(tc: TidbCluster) -> str:
    return assemble(
        "#!/bin/sh",
        "Waits until TiDB's port is open. Made by tidb-operator from the TidbInitializer.",
        settings(HOST=_host(tc), PORT=_port(tc), MOST=_MOST_TRIES),
        fragment("wait", __package__),
    )


def _main_script(initializer: TidbInitializer, tc: TidbCluster) -> str:
    # the script imports PyMySQL, with cryptography 9 MB, which an operator without a TidbInitializer does not need
    from member.initializer.initialize import Settings  # noqa: PLC0415

    spec = initializer.spec
    given = Settings(
        host=_host(tc),
        port=_port(tc),
        permit_host=spec.permit_host or "%",
        tls=_TLS if _tls_secret(initializer, tc) else "",
        verifies=not skips_sql_authority(tc),
        passwords=_PASSWORDS if spec.password_secret else "",
        sql=f"{_SQL}/init.sql" if has_sql(initializer) else "",
    )
    return with_settings(given)


def with_settings(given: "Settings") -> str:
    """The text of the main script, ready to run."""
    text = importlib.resources.files(__package__).joinpath("initialize.py").read_text("utf-8")
    return f'#!/usr/bin/env python\n{text}\n\nif __name__ == "__main__":\n    sys.exit(main({given!r}))\n'


def _host(tc: TidbCluster) -> str:
    """The Service for clients or, if the cluster has none, the headless Service of the servers."""
    has_service = tc.spec.tidb is not None and tc.spec.tidb.service is not None
    return member_name(tc, "tidb") if has_service else peer_service(tc, "tidb")


def _port(tc: TidbCluster) -> int:
    service = tc.spec.tidb.service if tc.spec.tidb else None
    return (service.port if service else None) or TIDB_SERVER_PORT

"""TiCI's desired objects (TICI-10 to TICI-19), and the sink of its changefeed (TICI-30, TICI-31).

The objects are pure functions of a defaulted TidbCluster; the sink, where TiCDC writes the changes from which TiCI
builds indexes, also depends on the keys of the bucket.

v1.7 writes the keys of the bucket into ConfigMaps. With `spec.tici.s3.secretName` they are in none: a pod gets them
from the Secret in its environment, and appends them to its own copy of the file, which is in memory.
"""

import hashlib
import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from apis import config, toml
from apis.accessor import component
from apis.component_specs import TiCIComponentSpec, TiCIS3
from apis.tidbcluster import TidbCluster
from apis.toml import Table
from dataplane.addresses import PD_CLIENT_PORT, TIDB_SERVER_PORT
from kube.objects import Json
from member.naming import member_name, peer_service
from member.objects import pod, volumes
from member.objects import stateful_set as stateful_sets
from member.objects.config_map import CONFIG_FILE, Content
from member.objects.services import peer, port
from member.startscript.fragments import fragment, settings

META = "tici-meta"
WORKER = "tici-worker"
ACCESS_KEY, SECRET_KEY = "access_key", "secret_key"
"""The keys of the Secret, as in the Secrets of Backups."""

_SUB_COMMANDS = {META: "meta", WORKER: "worker"}
_DIRECTORY, _FILE = "/etc/tici", "tici.toml"
_COPIES = "/var/lib/tici-config"
_COPY_VOLUME = "config-with-keys"

_COMMON = {
    "protocol": "canal-json",
    "enable-tidb-extension": "true",
    "output-row-key": "true",
    "use-table-id-as-path": "true",
}
_GCS, _AWS = "storage.googleapis.com", (".amazonaws.com", ".amazonaws.com.cn")
_SECRET_PARTS = re.compile(r"(?i)((?:access-key|secret|token|password|passwd|pwd)[^=&]*=)[^&\s\"']*")
_USER = re.compile(r"//[^/@\s]*@")


def services(tc: TidbCluster, name: str) -> list[Json]:
    """The headless Service, by which the servers find each other."""
    row = component(tc, name).type
    ports = [port(known_as, row.ports[known_as]) for known_as in row.peer_ports]
    return [peer(tc, name, ports, used_by="")]


def content(tc: TidbCluster, name: str) -> Content:
    """The text of the ConfigMap (2.4). Raises InvalidField for a configuration that validation rejects."""
    tables = component(tc, name).config_tables()
    if name == META:
        config.put_if_absent(tables, "tidb-server.dsns", [f"mysql://root@{member_name(tc, 'tidb')}:{_sql_port(tc)}"])
    config.put_if_absent(tables, "server.pd-addr", _pd(tc))
    for key, value in bucket(tc).items():
        config.put_if_absent(tables, f"s3.{key}", value)
    return Content({CONFIG_FILE: text_for_keys(tc, tables, "s3")}, {})


def text_for_keys(tc: TidbCluster, tables: Table, path: str) -> str:
    """A configuration as text. If the pod appends the keys, their section at `path` is the last one."""
    section = config.get(tables, path)
    if not s3_of(tc).secret_name or not isinstance(section, dict):
        return toml.dumps(tables)
    config.drop(tables, path)
    return f"{toml.dumps(tables)}\n[{path}]\n{toml.dumps(section)}"


def bucket(tc: TidbCluster) -> dict[str, object]:
    """The bucket as TiCI's servers and TiFlash's reader know it; without the keys if they are in a Secret."""
    s3 = s3_of(tc)
    keys = {} if s3.secret_name else {"access-key": s3.access_key, "secret-key": s3.secret_key}
    return {
        "endpoint": s3.endpoint,
        "region": s3.region,
        **keys,
        "use-path-style": s3.use_path_style,
        "bucket": s3.bucket,
        "prefix": s3.prefix,
    }


def s3_of(tc: TidbCluster) -> TiCIS3:
    """`spec.tici.s3`; empty if it is missing, which validation rejects."""
    return (tc.spec.tici and tc.spec.tici.s3) or TiCIS3().with_defaults()


def key_variables(tc: TidbCluster) -> list[Json]:
    """The variables with the keys of the bucket; none unless the keys are in a Secret."""
    secret, keys = s3_of(tc).secret_name, {"S3_ACCESS_KEY": ACCESS_KEY, "S3_SECRET_KEY": SECRET_KEY}
    return [
        {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}
        for name, key in keys.items()
        if secret
    ]


def _sql_port(tc: TidbCluster) -> int:
    service = tc.spec.tidb.service if tc.spec.tidb else None
    return (service.port if service else None) or TIDB_SERVER_PORT


def _pd(tc: TidbCluster) -> str:
    return f"{member_name(tc, 'pd')}:{PD_CLIENT_PORT}"


def stateful_set(tc: TidbCluster, name: str, config_map_name: str) -> Json:
    """The StatefulSet, whose pods read the ConfigMap of that name."""
    own = component(tc, name)
    spec, keys = own.spec, key_variables(tc)
    assert isinstance(spec, TiCIComponentSpec)
    container = pod.main_container(
        own,
        command=["/bin/sh", "-c"],
        ports=[{"containerPort": number} for number in own.type.ports.values()],
        mounts=[
            *volumes.storage_volume_mounts(name, spec.storage_volumes),
            *spec.additional_volume_mounts,
            volumes.mount("config", _DIRECTORY),
            *([volumes.mount(_COPY_VOLUME, _COPIES)] if keys else []),
        ],
        builtin_env=[pod.POD_NAME, pod.env("TZ", tc.spec.timezone or "UTC"), *keys],
    )
    container["args"] = [_start(tc, name)]
    status = own.type.ports[own.type.metrics_port]
    container["readinessProbe"] = pod.readiness_probe(pod.tcp_handler(status), spec.readiness_probe)
    template = pod.pod_template(
        own,
        containers=[container],
        volumes=[
            volumes.config_map_volume("config", config_map_name, CONFIG_FILE, _FILE),
            *([{"name": _COPY_VOLUME, "emptyDir": {"medium": "Memory"}}] if keys else []),
        ],
        metrics_port=status,
    )
    return stateful_sets.stateful_set(own, template=template, claims=volumes.storage_volume_claims(name, spec))


def as_built_by_v17(tc: TidbCluster, name: str, made: Json) -> Json:
    """The same without the time zone and the probe, which v1.7 lacks (TICI-12)."""

    def without(container: Json) -> Json:
        if container["name"] != name:
            return container
        env = [each for each in container["env"] if each["name"] != "TZ" or each in component(tc, name).spec.env]
        return {key: value for key, value in container.items() if key != "readinessProbe"} | {"env": env}

    containers = [without(each) for each in made["spec"]["template"]["spec"]["containers"]]
    return pod.with_other_fields(made, {"containers": containers})


def _start(tc: TidbCluster, name: str) -> str:
    """The argument of the shell: one line as in v1.7 (TICI-19), after the copy of the file with the keys."""
    ports = component(tc, name).type.ports
    domain = f".{tc.spec.cluster_domain}" if tc.spec.cluster_domain else ""
    file = f"{_COPIES if key_variables(tc) else _DIRECTORY}/{_FILE}"
    words = (
        f"exec /tici-server {_SUB_COMMANDS[name]}",
        f"--config={file}",
        "--host=0.0.0.0",
        f"--port={ports['peer']}",
        f"--status-port={ports['status']}",
        f"--advertise-host=${{POD_NAME}}.{peer_service(tc, name)}.{tc.metadata.namespace}.svc{domain}",
        f"--pd-addr={_pd(tc)}",
    )
    line = " ".join(words)
    if not key_variables(tc):
        return line
    copy = f"set -eu\n{settings(FILE=file)}cp {_DIRECTORY}/{_FILE} $FILE\n"
    return f"{copy}{fragment('bucket_keys')}{line}\n"


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of the bucket; both are empty for pods with a role of the cloud.

    `version` is the version of the Secret, empty if they are in the spec.
    """

    access: str = ""
    secret: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class Sink:
    """A sink: its URI, and `version`, which changes with its keys without revealing them."""

    uri: str
    version: str

    @property
    def shown(self) -> str:
        """The URI without the keys."""
        return without_keys(self.uri)


def needs_secret(tc: TidbCluster) -> str:
    """The Secret with the keys that the sink contains; empty if it needs none."""
    feed = tc.spec.tici.changefeed if tc.spec.tici else None
    return "" if feed and feed.sink_uri else s3_of(tc).secret_name


def sink(tc: TidbCluster, keys: Keys) -> Sink:
    """The sink that the spec wants."""
    feed = tc.spec.tici.changefeed if tc.spec.tici else None
    uri = (feed.sink_uri if feed else "") or _of_bucket(s3_of(tc), keys)
    return Sink(uri, keys.version or hashlib.blake2s(uri.encode(), digest_size=8).hexdigest())


def _of_bucket(s3: TiCIS3, keys: Keys) -> str:
    path = f"{s3.bucket}/{quote(s3.prefix.rstrip('/'))}/cdc"
    host = (urlsplit(s3.endpoint).hostname or "").lower()
    if host == _GCS or host.endswith(f".{_GCS}"):
        return f"gcs://{path}?{urlencode(_COMMON)}"
    access = {"access-key": keys.access, "secret-access-key": keys.secret} if keys.access else {}
    provider = {} if host.endswith(_AWS) else {"provider": "minio"}
    where = {"endpoint": s3.endpoint, "region": s3.region, "force-path-style": str(bool(s3.use_path_style)).lower()}
    return f"s3://{path}?{urlencode(where | access | provider | _COMMON, quote_via=quote, safe=':/')}"


def without_keys(text: str) -> str:
    """A URI, or an error that quotes one, without keys, tokens and passwords."""
    return _USER.sub("//", _SECRET_PARTS.sub(r"\1***", text))


def leads_to_the_same(one: str, other: str) -> bool:
    """True if two URIs name the same place. v1.7 gives fewer parameters, and TiCDC masks keys in its answers."""
    return _place(one) == _place(other)


def _place(uri: str) -> tuple[str, ...]:
    try:
        url = urlsplit(uri)
    except ValueError:
        return (uri,)
    endpoint = dict(parse_qsl(url.query)).get("endpoint", "")
    return url.scheme, url.netloc.rpartition("@")[2], url.path.rstrip("/"), endpoint

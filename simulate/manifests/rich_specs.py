"""A valid spec of every kind that sets all embedded Kubernetes trees, configurations and texts.

Code that changes one value of a spec, e.g. `type_mutants`, starts here: an absent field cannot be changed.
"""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from apis.components import component_types
from kube.objects import Json
from kube.resources import (
    BACKUP_SCHEDULES,
    BACKUPS,
    COMPACT_BACKUPS,
    DM_CLUSTERS,
    RESTORES,
    TIDB_CLUSTERS,
    TIDB_DASHBOARDS,
    TIDB_INITIALIZERS,
    TIDB_MONITORS,
    TIDB_NG_MONITORINGS,
    Resource,
)
from simulate.engine.other_kinds import spec_of_kind
from simulate.engine.trees import merged

_SIZE: Json = {"requests": {"storage": "1Gi", "cpu": "10m"}, "limits": {"cpu": "1"}}
_KEY: Json = {"name": "some-secret", "key": "some-key", "optional": True}
_ENV: list[Json] = [
    {"name": "COLOR", "value": "blue"},
    {"name": "SECRET", "valueFrom": {"secretKeyRef": _KEY}},
    {"name": "FIELD", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
]
_SECURITY: Json = {"runAsUser": 0, "capabilities": {"add": ["NET_ADMIN"]}, "privileged": False}
_MOUNTS: list[Json] = [{"name": "scratch", "mountPath": "/scratch", "readOnly": False}]
_VOLUMES: list[Json] = [
    {"name": "scratch", "emptyDir": {"sizeLimit": "1Gi"}},
    {"name": "texts", "configMap": {"name": "texts", "optional": True, "items": [{"key": "a", "path": "a"}]}},
    {"name": "claim", "persistentVolumeClaim": {"claimName": "some-claim"}},
]
_AFFINITY: Json = {
    "nodeAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}}
        ]
    },
    "podAntiAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {
                "weight": 1,
                "podAffinityTerm": {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}},
            }
        ]
    },
}
_TOLERATIONS: list[Json] = [{"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}]
_POD_SECURITY: Json = {"fsGroup": 1000, "sysctls": [{"name": "net.core.somaxconn", "value": "1024"}]}


def _container(name: str, **more: object) -> Json:
    return {
        "name": name,
        "env": _ENV[:1],
        "envFrom": [{"prefix": "X_", "configMapRef": {"name": "colors", "optional": True}}],
        "ports": [{"name": "extra", "containerPort": 9999, "protocol": "TCP"}],
        "resources": {"requests": {"cpu": "10m"}, "limits": {"memory": "64Mi"}},
        "volumeMounts": _MOUNTS,
        "securityContext": _SECURITY,
        **more,
    }


def _pod(main: str) -> Json:
    """The pod settings of every component; `main` is the container that the operator generates."""
    probe = {"tcpSocket": {"port": 9999}, "periodSeconds": 10}
    return {
        "env": _ENV,
        "envFrom": [{"secretRef": {"name": "some-secret", "optional": True}}],
        "initContainers": [_container("first", image="busybox:1", command=["true"])],
        "additionalContainers": [
            _container("beside", image="busybox:1", args=["sleep", "1000"], livenessProbe=probe),
            _container(main, ports=[]),
        ],
        "additionalVolumes": _VOLUMES,
        "additionalVolumeMounts": _MOUNTS,
        "affinity": _AFFINITY,
        "tolerations": _TOLERATIONS,
        "podSecurityContext": _POD_SECURITY,
        "securityContext": _SECURITY,
        "dnsConfig": {"nameservers": ["10.0.0.10"], "options": [{"name": "ndots", "value": "2"}]},
        "imagePullSecrets": [{"name": "registry"}],
        "topologySpreadConstraints": [{"topologyKey": "zone", "matchLabels": {"a": "b"}}],
        "nodeSelector": {},
        "labels": {"team": "blue"},
        "annotations": {"tidb.pingcap.com/sysctl-init": "true", "team": "blue"},
    }


_STORAGE_VOLUME: Json = {"name": "more", "storageSize": "1Gi", "mountPath": "/more"}
_SERVICE: Json = {"type": "ClusterIP", "annotations": {"a": "b"}, "loadBalancerSourceRanges": []}
_COMPONENTS: Sequence[tuple[str, Json]] = (
    ("pd", {"service": _SERVICE, "storageVolumes": [_STORAGE_VOLUME]}),
    (
        "tidb",
        {
            "service": _SERVICE | {"additionalPorts": [{"name": "more", "port": 9999, "targetPort": 9999}]},
            "storageVolumes": [_STORAGE_VOLUME],
            "slowLogVolumeName": "more",
            "slowLogTailer": {"limits": {"cpu": "1"}, "securityContext": _SECURITY},
            "lifecycle": {"preStop": {"exec": {"command": ["true"]}}},
            "arguments": ["--log-file=/var/log/tidb.log"],
            "plugins": ["audit-1"],
            "customizedStartupProbe": {"image": "busybox:1", "binaryName": "ready", "args": ["-x"]},
        },
    ),
    (
        "tikv",
        {
            "storageVolumes": [_STORAGE_VOLUME],
            "rocksDBLogVolumeName": "more",
            "separateRocksDBLog": True,
            "raftLogVolumeName": "more",
            "separateRaftLog": True,
            "logTailer": {"limits": {"cpu": "1"}, "securityContext": _SECURITY},
            "storeLabels": ["zone"],
            "dataSubDir": "data",
        },
    ),
    (
        "tiflash",
        {
            "storageClaims": [{"resources": {"requests": {"storage": "1Gi"}}}],
            "config": {
                "config": {"logger": {"log": "/data0/logs/server.log", "errorlog": "/data0/logs/error.log"}},
                "proxy": {"log-level": "info"},
            },
            "initializer": {"limits": {"cpu": "1"}, "securityContext": _SECURITY},
            "logTailer": {"limits": {"cpu": "1"}},
        },
    ),
    ("ticdc", {"storageVolumes": [_STORAGE_VOLUME], "config": {"log-file": "/var/log/ticdc.log"}}),
    ("tiproxy", {"storageVolumes": [_STORAGE_VOLUME]}),
    ("tici-worker", {"storageVolumes": [_STORAGE_VOLUME]}),
)
"""Pairs, because only the table of components lists them by name."""


def _cluster() -> Json:
    spec: Json = {
        "version": "v8.5.2",
        "timezone": "UTC",
        "configUpdateStrategy": "RollingUpdate",
        "pvReclaimPolicy": "Retain",
        "affinity": _AFFINITY,
        "tolerations": _TOLERATIONS,
        "podSecurityContext": _POD_SECURITY,
        "imagePullSecrets": [{"name": "registry"}],
        "dnsConfig": {"searches": ["example.com"]},
        "labels": {"team": "blue"},
        "annotations": {"team": "blue"},
        "discovery": _pod("discovery") | _SIZE,
        "services": [{"name": "pd", "type": "ClusterIP"}],
    }
    for row in component_types():
        if row.default_image:
            own: Json = {"replicas": 1, "config": {"log": {"level": "info"}}, "maxFailoverCount": 0} | _SIZE
            part = row.slot.tree(merged(own | _pod(row.name), dict(_COMPONENTS).get(row.name, {})))
            spec = merged(part, spec)
    return merged(spec, {"tici": {"s3": {"endpoint": "https://s3.example.com", "bucket": "indexes"}}})


def _dm() -> Json:
    spec = spec_of_kind(DM_CLUSTERS) | {"affinity": _AFFINITY, "tolerations": _TOLERATIONS}
    for name, main in (("master", "dm-master"), ("worker", "dm-worker")):
        spec[name] = spec[name] | _pod(main) | {"dataSubDir": "data"}
    return spec


def _s3(prefix: str) -> Json:
    return {
        "provider": "aws",
        "region": "eu-west-1",
        "bucket": "my-backups",
        "prefix": prefix,
        "endpoint": "http://s3.example.com",
        "secretName": "s3-keys",
        "options": ["--ignore-checksum"],
    }


def _job(prefix: str) -> Json:
    return {
        "br": {"cluster": "tiny", "options": ["--checksum=false"], "logLevel": "info"},
        "s3": _s3(prefix),
        "env": _ENV,
        "resources": {"requests": {"cpu": "10m"}},
        "tolerations": _TOLERATIONS,
        "affinity": _AFFINITY,
        "imagePullSecrets": [{"name": "registry"}],
        "podSecurityContext": _POD_SECURITY,
        "additionalVolumes": _VOLUMES,
        "additionalVolumeMounts": _MOUNTS,
    }


_ACCESS: Json = {"host": "tiny-tidb", "port": 4000, "user": "root", "secretName": "tidb-password"}


def _backup() -> Json:
    return _job("backups") | {"tableFilter": ["shop.*"], "cleanPolicy": "Retain", "from": _ACCESS}


def _local_restore() -> Json:
    volume = {"name": "backups", "persistentVolumeClaim": {"claimName": "some-claim"}}
    local = {"prefix": "demo", "volume": volume, "volumeMount": {"name": "backups", "mountPath": "/mnt/backup"}}
    return {key: value for key, value in _job("").items() if key != "s3"} | {"local": local, "to": _ACCESS}


def _schedule() -> Json:
    return {
        "schedule": "0 3 * * *",
        "maxBackups": 3,
        "backupTemplate": _job("snapshots"),
        "logBackupTemplate": _job("log") | {"backupMode": "log"},
        "compactInterval": "24h",
        "compactBackupTemplate": _job("log"),
        "imagePullSecrets": [{"name": "registry"}],
    }


def _compaction() -> Json:
    return _job("log") | {"startTs": "2026-01-01 00:00:00", "endTs": "2026-01-02 00:00:00", "concurrency": 4}


def _monitor() -> Json:
    plain: Json = {"securityContext": _SECURITY, "limits": {"cpu": "1"}, "requests": {"cpu": "10m"}}
    pod = {"annotations": {"a": "b"}, "labels": {"team": "blue"}, "tolerations": _TOLERATIONS}
    tls = {"ca": {"secret": _KEY, "configMap": _KEY}, "cert": {"secret": _KEY}, "keySecret": _KEY, "serverName": "x"}
    remote = {
        "url": "http://mimir.example.com/push",
        "name": "mimir",
        "writeRelabelConfigs": [{"sourceLabels": ["__name__"], "regex": "up", "action": "keep"}],
        "basicAuth": {"username": _KEY, "password": _KEY},
        "tlsConfig": tls,
        "headers": {"X-Scope": "blue"},
        "queueConfig": {"capacity": 100},
        "metadataConfig": {"send": True, "sendInterval": "2m"},
    }
    ingress = {"hosts": ["monitor.example.com"], "tls": [{"hosts": ["monitor.example.com"], "secretName": "x"}]}
    more: Json = {
        "prometheus": plain
        | {
            "config": {
                "commandOptions": ["--log.format=json"],
                "ruleConfigRef": {"name": "rules"},
                "configMapRef": {"name": "prometheus"},
            },
            "remoteWrite": [remote],
            "ingress": ingress,
            "additionalVolumeMounts": _MOUNTS,
            "service": {"type": "ClusterIP"},
        },
        "grafana": plain | {"envs": {"GF_A": "b"}, "ingress": ingress, "usernameSecret": _KEY, "passwordSecret": _KEY},
        "initializer": plain | {"envs": {"A": "b"}},
        "reloader": plain,
        "thanos": plain
        | {"baseImage": "thanosio/thanos", "version": "v0.30.0", "objectStorageConfig": _KEY, "tracingConfig": _KEY},
        "externalLabels": {"region": "eu"},
        "additionalContainers": [_container("beside", image="busybox:1"), _container("prometheus", ports=[])],
        "additionalVolumes": _VOLUMES,
        "podSecurityContext": _POD_SECURITY,
        "imagePullSecrets": [{"name": "registry"}],
        "alertmanagerURL": "alertmanager.monitoring:9093",
        "kubePrometheusURL": "http://prometheus.monitoring:9090",
        "dm": {"clusters": [{"name": "sync"}], "initializer": {"baseImage": "pingcap/dm-init", "version": "v8.5.2"}},
    }
    return merged(spec_of_kind(TIDB_MONITORS, "tiny"), more | pod)


def _initializer() -> Json:
    return spec_of_kind(TIDB_INITIALIZERS, "tiny") | {
        "podSecurityContext": _POD_SECURITY,
        "imagePullSecrets": [{"name": "registry"}],
        "resources": {"requests": {"cpu": "10m"}},
        "tolerations": _TOLERATIONS,
        "permitHost": "%",
        "passwordSecret": "passwords",
    }


def _dashboard() -> Json:
    return merged(
        spec_of_kind(TIDB_DASHBOARDS, "tiny"),
        _pod("tidb-dashboard") | {"service": _SERVICE, "pathPrefix": "/dashboard", "telemetry": False},
    )


def _ng_monitoring() -> Json:
    pod = _pod("ng-monitoring")
    spec = merged(spec_of_kind(TIDB_NG_MONITORINGS, "tiny"), pod)
    own = merged(spec["ngMonitoring"], pod | {"config": {"log": {"level": "INFO"}}, "retentionPeriod": "10d"})
    return spec | {"ngMonitoring": own}


_SPECS: Mapping[Resource, Callable[[], Json]] = {
    TIDB_CLUSTERS: _cluster,
    DM_CLUSTERS: _dm,
    BACKUPS: _backup,
    RESTORES: _local_restore,
    BACKUP_SCHEDULES: _schedule,
    COMPACT_BACKUPS: _compaction,
    TIDB_MONITORS: _monitor,
    TIDB_INITIALIZERS: _initializer,
    TIDB_DASHBOARDS: _dashboard,
    TIDB_NG_MONITORINGS: _ng_monitoring,
}

KINDS = tuple(_SPECS)


def rich_spec(resource: Resource) -> Json:
    """The spec of a kind, as a fresh tree; its cluster is `tiny`."""
    fresh: Json = msgspec.json.decode(msgspec.json.encode(_SPECS[resource]()))
    return fresh

"""Fields and annotations that a user has set without effect, in general or in this cluster. Pure functions."""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from apis import images
from apis.accessor import Component, components, workloads
from apis.cluster import Cluster
from apis.component_specs import TiDBSlowLogTailerSpec, TiDBSpec, TiKVSpec
from apis.identity import speaks_sql_tls, tls_enabled
from apis.problem import Problem
from apis.shared import Json, LogTailerSpec, WorkloadSpec
from apis.tidbcluster import TidbCluster
from member import labels
from member.fields import backups, monitors
from member.fields.declared import ITEM, NO_EFFECT, REMOVE, NoEffect, fields, fields_of, last_fit
from member.startscript import options


def ignored(tc: Cluster, spec: Json) -> list[Problem]:
    """The fields in the user's `spec` that have no effect; `tc` is the defaulted cluster.

    Empty and false values are not reported.
    """
    problems = [*_images(tc, spec), *(problem for own in components(tc) for problem in _volumes(own, spec))]
    problems += _annotations(tc)
    return [*problems, *(_declared(tc, spec) if isinstance(tc, TidbCluster) else ignored_by(tc.kind, spec))]


def _problem(field: str, value: object, why: NoEffect) -> Problem:
    return Problem(field, value, f"has no effect, because {why.because}; {why.instead}")


_SECRET = ("password", "sasToken", "bearerToken")
"""The ends of paths whose values no message shows."""


def ignored_by(kind: str, spec: Json) -> list[Problem]:
    """Like `ignored`, for a kind without components, e.g. a TidbMonitor."""
    in_vain = {**OF_KIND.get(kind, {}), **backups.without_effect(kind, spec)}
    if kind == "TidbMonitor":
        in_vain |= monitors.without_effect(spec)
    known = fields_of(kind)
    problems = [
        _problem(f"spec.{field}", None if isinstance(value, dict) or path.endswith(_SECRET) else value, why)
        for path, why in in_vain.items()
        if not _is_below(path, in_vain)
        for field, value in _written(spec, path)
        if value and value != known.get(path, {}).get("default")
    ]
    base_field, *image_fields = _IMAGES.get(kind, ("",))
    base = next((value for _, value in _written(spec, base_field)), "")
    images_beside = (each for path in image_fields for each in _written(spec, path)) if base else ()
    return problems + [
        _problem(f"spec.{field}", image, NoEffect(f"{base} runs", _instead_of(str(image))))
        for field, image in images_beside
        if image
    ]


def _is_below(path: str, tables: Container[str]) -> bool:
    """True if one of the tables on the way to a field is among `tables`."""
    steps = path.split(".")
    return any(".".join(steps[:end]) in tables for end in range(1, len(steps)))


# Annotations


def _annotations(tc: Cluster) -> Iterator[Problem]:
    """An annotation that only "true" switches on, with another value."""
    value = tc.metadata.annotations.get(labels.TIDB_SCALE_SELECTOR, "")
    if value not in ("", "true", "false"):
        why = NoEffect('only "true" writes the selector of TiDB\'s pods', 'set it to "true", or remove it')
        yield _problem(f"metadata.annotations[{labels.TIDB_SCALE_SELECTOR}]", value, why)


# Images


def _images(tc: Cluster, spec: Json) -> Iterator[Problem]:
    """The deprecated `image`, if `baseImage` and a version determine the image (defaults-and-validation.md 8.1)."""
    for own in workloads(tc):
        image = _section(own, spec).get("image")
        if image and image != own.image:
            yield _problem(f"{own.field}.image", image, NoEffect(f"{own.image} runs", _instead_of(image)))


def _instead_of(image: str) -> str:
    reference = images.parse(image)
    base = str(images.Reference(reference.repository, "", reference.digest))
    return f"write baseImage: {base} and version: {reference.tag}" if reference.tag else f"write baseImage: {base}"


# Volumes


def _volumes(own: Component, spec: Json) -> Iterator[Problem]:
    """The problems of a data volume's settings in a component that has no data volume."""
    if own.type.data_volume:
        return
    written, because, instead = _section(own, spec), f"{own.type.title} has no data volume", REMOVE
    if own.type.storage_claims:
        because, instead = "its volumes are its storageClaims", "set the size there"
    elif isinstance(own.spec, WorkloadSpec):
        instead = "remove it, or list volumes in storageVolumes"
    if size := (written.get("requests") or {}).get("storage"):
        yield _problem(f"{own.field}.requests.storage", size, NoEffect(because, instead))
    for name in ("storageClassName", "volumeAttributesClassName"):
        if (value := written.get(name)) and not written.get("storageVolumes"):
            yield _problem(f"{own.field}.{name}", value, NoEffect(because, instead))


def _section(own: Component, spec: Json) -> Json:
    """The user's section of a component; empty for a component that runs although the spec lacks it."""
    found = [value for _, value in _written(spec, own.field.removeprefix("spec."))]
    return found[0] if found and isinstance(found[0], dict) else {}


# Other kinds


_DOMAIN_OF_CLUSTER = NoEffect("the domain of the TidbCluster itself counts")
_PORT_OF_SERVER = NoEffect("the Service has the port of the server")
_READINESS_OF_CONTAINER = NoEffect("the readiness of the container counts")
_NOT_SUSPENDED = NoEffect("its pod cannot be suspended", "delete the object")
_ONE_POD = {"readinessProbe": _READINESS_OF_CONTAINER, "suspendAction": _NOT_SUSPENDED}
_IMAGES = {
    "TidbDashboard": ("baseImage", "image"),
    "TidbNGMonitoring": ("ngMonitoring.baseImage", "image", "ngMonitoring.image"),
}
"""For kinds with one image: the field that determines it, then the fields that do so only without that field."""

OF_KIND: Mapping[str, Mapping[str, NoEffect]] = {
    "DMCluster": {path: why for path, why in NO_EFFECT.items() if path.startswith("discovery.")}
    | {
        "discovery.address": NoEffect("the operator makes Discovery, and its Service has the address"),
        "tlsCluster.enableDiscoveryMTLS": NoEffect("masters ask Discovery over HTTP"),
        "master.readinessProbe": _READINESS_OF_CONTAINER,
        "worker.readinessProbe": _READINESS_OF_CONTAINER,
        "master.service.port": NoEffect("clients of DM know its port"),
        "worker.dataSubDir": NoEffect("a worker keeps its data where its configuration says"),
    },
    "TidbDashboard": _ONE_POD
    | {
        "configUpdateStrategy": NoEffect("it has no configuration"),
        "clusters[].clusterDomain": _DOMAIN_OF_CLUSTER,
        "service.port": _PORT_OF_SERVER,
    },
    "TidbNGMonitoring": _ONE_POD
    | {f"ngMonitoring.{name}": why for name, why in _ONE_POD.items()}
    | {"clusters[].clusterDomain": _DOMAIN_OF_CLUSTER},
    "TidbMonitor": {
        "clusters[].clusterDomain": _DOMAIN_OF_CLUSTER,
        "dm.clusters[].clusterDomain": _DOMAIN_OF_CLUSTER,
        **{f"{name}.service.port": _PORT_OF_SERVER for name in ("prometheus", "grafana", "reloader")},
    },
    "TidbInitializer": {"cluster.clusterDomain": NoEffect("TiDB is reached in the namespace of the initializer")},
}
"""The fields without effect, by kind and path; a path may name a whole table."""


# Fields that never have an effect, and those that need another


class _Need(NamedTuple):
    """The condition under which a field has an effect, and the way out if it has none."""

    holds: Callable[[TidbCluster], bool]
    why: NoEffect


def _tidb(tc: TidbCluster) -> TiDBSpec:
    return tc.spec.tidb or TiDBSpec(replicas=0)


def _tikv(tc: TidbCluster) -> TiKVSpec:
    return tc.spec.tikv or TiKVSpec(replicas=0)


def _offers_tls(tc: TidbCluster) -> bool:
    client = _tidb(tc).tls_client
    return client is not None and client.enabled


def _has_load_balancer(tc: TidbCluster) -> bool:
    service = _tidb(tc).service
    return service is not None and service.type == "LoadBalancer"


_TLS = _Need(tls_enabled, NoEffect("components speak no TLS", "set spec.tlsCluster.enabled to true, or remove it"))
_SQL_TLS = _Need(
    _offers_tls, NoEffect("TiDB offers clients no TLS", "set spec.tidb.tlsClient.enabled to true, or remove it")
)
_LOAD_BALANCER = _Need(
    _has_load_balancer, NoEffect("its Service is no LoadBalancer", "set spec.tidb.service.type, or remove it")
)
_SLOW_LOG = _Need(
    lambda tc: _tidb(tc).separate_slow_log is not False,
    NoEffect("no slow log is kept apart", "set spec.tidb.separateSlowLog to true, or remove it"),
)
_ROCKSDB_LOG = _Need(
    lambda tc: bool(_tikv(tc).separate_rocks_db_log),
    NoEffect("no log of RocksDB is kept apart", "set spec.tikv.separateRocksDBLog to true, or remove it"),
)
_RAFT_LOG = _Need(
    lambda tc: bool(_tikv(tc).separate_raft_log),
    NoEffect("no log of Raft is kept apart", "set spec.tikv.separateRaftLog to true, or remove it"),
)
_ANY_LOG = _Need(
    lambda tc: bool(_tikv(tc).sidecars),
    NoEffect("no log is kept apart", "set spec.tikv.separateRocksDBLog or separateRaftLog to true, or remove it"),
)


def _has_microservices(tc: TidbCluster) -> bool:
    return tc.spec.pd is not None and tc.spec.pd.mode == "ms"


def _pd_script_is_v2(tc: TidbCluster) -> bool:
    return options.is_v2(tc) or (_has_microservices(tc) and bool(tc.spec.pdms))


def _pd_waits_for_its_address(tc: TidbCluster) -> bool:
    is_alone = not (_has_microservices(tc) and tc.spec.pdms)
    waits = options.has_flag(tc, options.WAIT_FOR_OWN_ADDRESS) if is_alone else True
    return _pd_script_is_v2(tc) and waits and not options.has_flag(tc, options.NO_WAIT_DNS)


_MICROSERVICES = _Need(
    _has_microservices,
    NoEffect("PD serves alone", "set spec.pd.mode to ms, or remove the microservice"),
)

_PRIVILEGES = NoEffect(
    "securityContext says what the container may do", "set securityContext.privileged to true, or remove it"
)
_V2 = _Need(
    _pd_script_is_v2,
    NoEffect("start scripts are v1", "set spec.startScriptVersion to v2, or remove it"),
)

_NATIVE = NoEffect("only native sidecars wait", "set useSidecar beside it, or remove it")


def _is_native(tailer: LogTailerSpec | TiDBSlowLogTailerSpec | None) -> bool:
    return tailer is None or tailer.use_sidecar


NEEDS: Mapping[str, _Need] = {
    "startScriptV2FeatureFlags": _V2,
    "pd.startUpScriptVersion": _Need(
        lambda tc: not _pd_script_is_v2(tc), NoEffect("it chooses among scripts of the first generation")
    ),
    "pd.initWaitTime": _Need(
        _pd_waits_for_its_address,
        NoEffect("PD does not wait for its own address", f"set {options.WAIT_FOR_OWN_ADDRESS}, or remove it"),
    ),
    "tlsCluster.enableDiscoveryMTLS": _TLS,
    "*.mountClusterClientSecret": _TLS,
    "tiproxy.certLayout": _Need(lambda tc: tls_enabled(tc) or _offers_tls(tc), _TLS.why),
    "pd.tlsClientSecretName": _SQL_TLS,
    "tidb.tlsClient.disableClientAuthn": _SQL_TLS,
    "tidb.tlsClient.skipInternalClientCA": _SQL_TLS,
    "tiproxy.tlsClientSecretName": _SQL_TLS,
    "tiproxy.sslEnableTiDB": _Need(
        lambda tc: not speaks_sql_tls(tc) and _offers_tls(tc),
        NoEffect("TiProxy speaks TLS with TiDB exactly if TiDB offers it"),
    ),
    "tidb.service.loadBalancer*": _LOAD_BALANCER,
    "tidb.slowLogVolumeName": _SLOW_LOG,
    "tikv.rocksDBLogVolumeName": _ROCKSDB_LOG,
    "tikv.raftLogVolumeName": _RAFT_LOG,
    "tikv.logTailer.*": _ANY_LOG,
    "tikv.logTailer.sleepTimeSeconds": _Need(lambda tc: _is_native(_tikv(tc).log_tailer), _NATIVE),
    "tidb.slowLogTailer.sleepTimeSeconds": _Need(
        lambda tc: tc.spec.tidb is None or _is_native(tc.spec.tidb.slow_log_tailer), _NATIVE
    ),
    "tiflash.logTailer.sleepTimeSeconds": _Need(
        lambda tc: tc.spec.tiflash is None or _is_native(tc.spec.tiflash.log_tailer), _NATIVE
    ),
    "tiproxy.readinessProbe.*": _Need(
        lambda tc: bool(tc.spec.tiproxy and tc.spec.tiproxy.readiness_probe and tc.spec.tiproxy.readiness_probe.type),
        NoEffect("TiProxy has a probe only with its type", "set spec.tiproxy.readinessProbe.type, or remove it"),
    ),
    "tikv.privileged": _Need(lambda tc: _tikv(tc).security_context is None, _PRIVILEGES),
    "tiflash.privileged": _Need(
        lambda tc: tc.spec.tiflash is None or tc.spec.tiflash.security_context is None, _PRIVILEGES
    ),
    "pdms[].replicas": _MICROSERVICES,
}
"""The fields that have an effect only together with other settings, by globs of paths."""


class _Row(NamedTuple):
    """The entries of these tables about a field."""

    path: str
    default: object
    never: NoEffect | None
    need: _Need | None

    def why(self, tc: TidbCluster) -> NoEffect | None:
        """Why the field has no effect in a cluster; None if it has one."""
        if self.never is None and self.need is not None and not self.need.holds(tc):
            return self.need.why
        return self.never


def _declared(tc: TidbCluster, spec: Json) -> Iterator[Problem]:
    for row in _rows():
        why = row.why(tc)
        for field, value in _written(spec, row.path) if why else ():
            if value and value != row.default:
                assert why
                yield _problem(f"spec.{field}", value, why)


@cache
def _rows() -> Sequence[_Row]:
    """The fields that these tables mention."""
    rows = (
        _Row(path, schema.get("default"), last_fit(path, NO_EFFECT), last_fit(path, NEEDS))
        for path, schema in fields().items()
    )
    return [row for row in rows if row.never or row.need]


def _written(tree: object, path: str) -> Iterator[tuple[str, object]]:
    """The values at a path, such as `pdms[].version` or `pdms[0].version`, each with its path."""
    step, _, rest = path.partition(".")
    name, _, index = step.partition("[")
    value = tree.get(name) if isinstance(tree, dict) else None
    if step.endswith(ITEM):
        found = [(f"{name}[{at}]", item) for at, item in enumerate(value if isinstance(value, list) else ())]
    elif index:
        at = int(index.rstrip("]"))
        found = [(step, value[at])] if isinstance(value, list) and at < len(value) else []
    else:
        found = [(step, value)]
    for here, inner in found:
        if rest:
            yield from ((f"{here}.{below}", leaf) for below, leaf in _written(inner, rest))
        elif inner is not None:
            yield here, inner

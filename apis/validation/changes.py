"""Fields that can no longer change, judged by what runs (defaults-and-validation.md 4; lifecycle.md R25).

The API server keeps no previous spec, so the rules compare with the StatefulSets and the ConfigMaps that they mount. A
difference without effect, or with a destructive one, is refused with the way back.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import attrgetter

from apis import config, images, toml
from apis.accessor import Component, find, workloads
from apis.components import component_names, component_type
from apis.dmcluster import DMCluster
from apis.identity import INSTANCE_LABEL, instance_name, tls_enabled
from apis.problem import InvalidField, Problem
from apis.shared import Json
from apis.tidbcluster import TidbCluster
from apis.toml import Table
from apis.validation import stricter

_NOTHING: Json = {"spec": {"replicas": 0}}
_BOOTSTRAP_VOLUME = "tidb-bootstrap-sql"

_DM_MASTER = "dm-master"
_DM_TLS = "spec.tlsCluster.enabled"


@dataclass(frozen=True, slots=True)
class Running:
    """The running parts of a cluster, by member type.

    `images` are the images of the main containers, `configs` the parsed configuration files in use; `bootstrap_sql`
    names the ConfigMap that TiDB mounts, empty if none; `instance` is the instance label in the selectors.
    `pd_replicas` is the desired number of PD pods, `pd_tls` whether they speak TLS, None if unknown. `domains` are
    the cluster domains in the pods' names. The rules of `stricter` judge by `stateful_sets`.
    """

    instance: str = ""
    images: Mapping[str, str] = field(default_factory=dict)
    configs: Mapping[str, Table] = field(default_factory=dict)
    bootstrap_sql: str = ""
    pd_replicas: int = 0
    pd_tls: bool | None = None
    domains: frozenset[str] = frozenset()
    stateful_sets: Mapping[str, Json] = field(default_factory=dict, compare=False)


def observe(
    stateful_sets: Mapping[str, Json],
    config_files: Mapping[str, str],
    domains: Iterable[str] = (),
    instance: str = "",
    left_behind: Iterable[str] = (),
) -> Running:
    """The running parts as StatefulSets and their mounted configuration texts show them, both by member type.

    `instance` is the instance label of other objects, in case no StatefulSet exists; `left_behind` are the
    configuration texts of a PD without a StatefulSet. A text that is not TOML is left out: nothing can be compared
    with it.
    """
    images_in_use: dict[str, str] = {}
    bootstrap_sql = ""
    pd_replicas, pd_tls = 0, speaks_tls(left_behind, "security.cacert-path")
    for name, stateful_set in stateful_sets.items():
        instance = _instance_of(stateful_set) or instance
        pod = stateful_set["spec"]["template"]["spec"]
        images_in_use[name] = next((entry["image"] for entry in pod["containers"] if entry["name"] == name), "")
        if name == "tidb":
            bootstrap_sql = _bootstrap_sql_of(pod)
        if name == "pd":
            pd_replicas = stateful_set["spec"].get("replicas", 1)
            pd_tls = any(volume["name"] == component_type("pd").certificate_volume for volume in pod.get("volumes", ()))
    configs = _parsed(config_files)
    known_as = frozenset(domains)
    return Running(instance, images_in_use, configs, bootstrap_sql, pd_replicas, pd_tls, known_as, stateful_sets)


def _instance_of(stateful_set: Json) -> str:
    return str(stateful_set["spec"]["selector"].get("matchLabels", {}).get(INSTANCE_LABEL, ""))


def _bootstrap_sql_of(pod: Json) -> str:
    mounted = (volume for volume in pod.get("volumes", ()) if volume["name"] == _BOOTSTRAP_VOLUME)
    return next((str(volume.get("configMap", {}).get("name", "")) for volume in mounted), "")


def _parsed(config_files: Mapping[str, str]) -> dict[str, Table]:
    result = {}
    for name, text in config_files.items():
        try:
            result[name] = toml.loads(text)
        except ValueError:
            continue
    return result


def immutability(tc: TidbCluster, running: Running) -> list[Problem]:
    """The problems of a defaulted cluster's spec, given what runs; the rules of creation if nothing ever ran."""
    if not running.images:
        begun = (
            [*_check_domain(tc, running), *_check_tls(tc, running)] if tc.status.cluster_id else [*_check_creation(tc)]
        )
        return [*stricter.check(tc, running.stateful_sets), *_check_instance(tc, running), *begun]
    return [
        *stricter.check(tc, running.stateful_sets),
        *_check_instance(tc, running),
        *_check_domain(tc, running),
        *_check_tls(tc, running),
        *_check_pd(tc, running),
        *_check_bootstrap_sql(tc, running),
        *(problem for component in workloads(tc) for problem in _check_emptied(component, running)),
    ]


def _check_creation(tc: TidbCluster) -> Iterator[Problem]:
    for component in workloads(tc):
        yield from _check_founding(component)
        if not component.image and component.type.guarded:
            yield Problem(f"{component.field}.baseImage", "", "must not be empty")
        if images.is_reference(component.image) and not _is_versioned(component.image):
            message = f"must not be empty; without it the version of {component.name} is unknown"
            if component.runs_image_field:
                message = f"must have a tag; without it the version of {component.name} is unknown"
            yield Problem(*_version_of(component), message)


def _check_founding(component: Component) -> Iterator[Problem]:
    """Settings with which members that join do not start; for a cluster that runs with them they are only named."""
    founding = [flag for flag in component.type.flags.values() if flag.founding]
    try:
        tables = component.config_tables() if founding else {}
    except InvalidField:  # `validate` reports it
        return
    for setting in founding:
        for path, value in config.find(tables, setting.path):
            message = "would keep members that join from starting, as Discovery says whom they join; remove it"
            yield Problem(f"{component.config_field}.{path}", value, message)


def _is_versioned(image: str) -> bool:
    reference = images.parse(image)
    return bool(reference.tag or reference.digest)


def _version_of(component: Component) -> tuple[str, str]:
    """The field that says which version of a component runs, and its value."""
    return component.version_field, component.spec.image if component.runs_image_field else component.wanted_version


def _check_instance(tc: TidbCluster, running: Running) -> Iterator[Problem]:
    if running.instance and running.instance != instance_name(tc):
        message = f"cannot be changed, because selectors are immutable; set it back to {running.instance}"
        yield Problem(f'metadata.labels["{INSTANCE_LABEL}"]', instance_name(tc), message)


def _check_domain(tc: TidbCluster, running: Running) -> Iterator[Problem]:
    """Members and stores are registered under one domain, and a roll to another would split them (lifecycle.md 4.1).

    Until PD is bootstrapped nothing is registered, and a domain that does not resolve can be corrected.
    """
    wanted = tc.spec.cluster_domain
    if not running.domains or wanted in running.domains or not _is_bootstrapped(tc, running):
        return
    known = ", ".join(sorted(running.domains - {""}))
    way_out = f"set it back to {known}" if known else "remove it"
    message = (
        f"cannot be changed after PD has bootstrapped, because members and stores are registered under it; {way_out}"
    )
    yield Problem("spec.clusterDomain", wanted, message)


def _is_bootstrapped(tc: TidbCluster, running: Running) -> bool:
    return bool(tc.status.cluster_id) or "tikv" in running.images


def _check_tls(tc: TidbCluster, running: Running) -> Iterator[Problem]:
    """Servers with and without TLS do not understand each other, so that they cannot be restarted one by one (R25)."""
    wanted = tls_enabled(tc)
    if not tc.status.cluster_id or running.pd_tls is None or wanted == running.pd_tls:
        return
    back = f"set it back to {str(running.pd_tls).lower()}"
    if obstacle := _obstacle_to_tls(running):
        why, way_out = obstacle
        yield Problem("spec.tlsCluster.enabled", wanted, f"cannot be changed {why}; {back}, and {way_out}")


def _obstacle_to_tls(running: Running) -> tuple[str, str] | None:
    """Why a cluster cannot begin or cease to speak TLS, and what to do about it."""
    if "pd" not in running.images:
        return "while PD is suspended, because its members know each other by their URLs", "resume the cluster"
    if running.pd_replicas > 1:
        return "while PD has more than one member", "scale PD to 1 before changing it"
    stores = component_names(attrgetter("is_store"))
    several = [name for name in stores if (running.stateful_sets.get(name) or _NOTHING)["spec"].get("replicas", 1) > 1]
    if several:
        fields = " and ".join(f"spec.{name}.suspendAction.suspendStatefulSet" for name in several)
        why = f"while several stores of {' and '.join(several)} run, which would not understand each other"
        return why, f"set {fields} to true before changing it"
    return None


def speaks_tls(configs: Iterable[str], authority: str) -> bool | None:
    """True if servers use TLS, as configurations name an `authority`; None if there is none, or several differ."""
    tables = _parsed({str(number): text for number, text in enumerate(configs)}).values()
    found = {config.get(table, authority) is not None for table in tables}
    return found.pop() if len(found) == 1 else None


def _check_pd(tc: TidbCluster, running: Running) -> Iterator[Problem]:
    pd, in_use = find(tc, "pd"), running.configs.get("pd")
    if pd is None or pd.config is None or in_use is None:
        return
    try:
        wanted = pd.config_tables()
    except InvalidField:  # `validate` reports it
        return
    for section in pd.type.config.fixed:
        now, compared = in_use.get(section) or {}, wanted.get(section)
        if new := _left_out_by_v16(pd, section, wanted, in_use):
            compared = {key: value for key, value in wanted[section].items() if key not in new}
        if (compared or now) and not toml.same({section: compared}, {section: now}):
            message = f"has no effect on a running PD; change it with pd-ctl and set it back to {now} here"
            yield Problem(f"{pd.config_field}.{section}", wanted.get(section), message)
    names = config.get(wanted, "security.cert-allowed-cn")
    if isinstance(names, list) and len(names) > 1 and names != config.get(in_use, "security.cert-allowed-cn"):
        yield Problem(
            f"{pd.config_field}.security.cert-allowed-cn",
            names,
            "must have one name only, because PD accepts no more; keep one",
        )


def without_effect(tc: TidbCluster, running: Running) -> list[str]:
    """The keys of the spec that a running PD ignores, and that are accepted all the same.

    v1.6 omitted them from the file, so they look like a change although the manifest is the same.
    """
    pd, in_use = find(tc, "pd"), running.configs.get("pd")
    if pd is None or in_use is None or isinstance(pd.config, str):
        return []
    wanted, sections = pd.config_tables(), pd.type.config.fixed
    new = {section: _left_out_by_v16(pd, section, wanted, in_use) for section in sections}
    return [f"{pd.config_field}.{section}.{key}" for section, keys in new.items() for key in keys]


def _left_out_by_v16(pd: Component, section: str, wanted: Table, in_use: Table) -> list[str]:
    """The parts that v1.6 omits from the file: in the object form unknown keys, and empty lists."""
    table, now = wanted.get(section), in_use.get(section, {})
    if isinstance(pd.config, str) or not isinstance(table, Mapping) or not isinstance(now, Mapping):
        return []
    known = pd.type.config.fixed[section]
    return [key for key, value in table.items() if key not in now and (key not in known or value == [])]


def _check_bootstrap_sql(tc: TidbCluster, running: Running) -> Iterator[Problem]:
    if tc.spec.tidb is None or "tidb" not in running.images:
        return
    wanted = tc.spec.tidb.bootstrap_sql_config_map_name
    if wanted and wanted != running.bootstrap_sql:
        way_out = f"set it back to {running.bootstrap_sql} or remove it" if running.bootstrap_sql else "remove it"
        message = f"has no effect after the first start of TiDB; {way_out}"
        yield Problem("spec.tidb.bootstrapSQLConfigMapName", wanted, message)


def _check_emptied(component: Component, running: Running) -> Iterator[Problem]:
    image = running.images.get(component.name)
    if image is None:
        return
    if not component.image:
        if component.type.guarded:
            yield Problem(f"{component.field}.baseImage", "", f"cannot be emptied while {image} is running")
    elif _is_versioned(image) and not _is_versioned(component.image):
        yield Problem(*_version_of(component), f"cannot be emptied while {component.name} is running {image}")
    if component.type.guarded and component.config is None and _written_by_user(component, running):
        message = (
            "cannot be removed while the running configuration has settings; set `config: {}` to return to the defaults"
        )
        yield Problem(component.config_field, None, message)


def _written_by_user(component: Component, running: Running) -> bool:
    """True if the configuration in use has more than the operator puts there by itself (objects.md 6.4)."""
    left = config.merge(running.configs.get(component.name, {}), {})
    for path in component.type.config.set_by_operator:
        config.drop(left, path)
    return _has_values(left)


def _has_values(table: Table) -> bool:
    return any(_has_values(value) if isinstance(value, dict) else True for value in table.values())


def dm_immutability(dc: DMCluster, stateful_sets: Mapping[str, Json], left_behind: Iterable[str]) -> Iterator[Problem]:
    """Problems of a defaulted cluster, given its StatefulSets by component.

    `left_behind` are the configurations, as TOML, of masters that are suspended.
    """
    wanted, live = tls_enabled(dc), stateful_sets.get(_DM_MASTER)
    speak_tls = _masters_speak_tls(dc) if live else speaks_tls(left_behind, "ssl-ca")
    if speak_tls is None or wanted == speak_tls:
        return
    back = f"set it back to {str(speak_tls).lower()}"
    if live is None:
        why = "while the masters are suspended, because they know each other by their URLs"
        yield Problem(_DM_TLS, wanted, f"cannot be changed {why}; {back}, and resume the cluster")
    elif max(len(dc.status.master.members), live["spec"].get("replicas", 1)) > 1:
        why = "while there is more than one master, because those with and without TLS do not understand each other"
        way_out = f"{back}, and scale spec.master to 1 before changing it"
        yield Problem(_DM_TLS, wanted, f"cannot be changed {why}; {way_out}")


def _masters_speak_tls(dc: DMCluster) -> bool | None:
    """True if the masters use TLS; None if none was ever up, or they differ."""
    schemes = {
        member.client_url.partition("://")[0] for member in dc.status.master.members.values() if member.client_url
    }
    return schemes == {"https"} if len(schemes) == 1 else None

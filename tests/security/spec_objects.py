"""The objects of the operator and `backup-manager` for a spec, and the command lines of their programs."""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from apis.backup_defaulting import with_backup_defaults, with_compact_defaults, with_restore_defaults
from apis.backups import Backup
from apis.compact_backups import CompactBackup
from apis.decoding import decode
from apis.defaulting import with_defaults
from apis.dmcluster import DMCluster
from apis.problem import InvalidField
from apis.restores import Restore
from apis.tidbcluster import TidbCluster
from apis.validation import validate
from backup_manager.br_arguments import PointInTime, backup_arguments, log_arguments, restore_arguments
from backup_manager.database import Login
from backup_manager.imports import lightning_config
from backup_manager.places import storage_flags
from backup_manager.tool_arguments import dumpling_arguments, lightning_arguments
from cli.fields.probe import desired_objects
from kube.objects import Json
from kube.resources import (
    BACKUPS,
    COMPACT_BACKUPS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    DM_CLUSTERS,
    JOBS,
    RESTORES,
    STATEFUL_SETS,
    TIDB_CLUSTERS,
    Resource,
)
from simulate.manifests.type_mutants import MutantWorld

_MADE = (STATEFUL_SETS, DEPLOYMENTS, JOBS, CONFIG_MAPS)
_SECONDS = 3.0
"""Seconds in which the operator creates the objects of a new one."""

_MODELS: Mapping[Resource, type[TidbCluster] | type[DMCluster]] = {TIDB_CLUSTERS: TidbCluster, DM_CLUSTERS: DMCluster}


def objects_of(kind: Resource, spec: Json) -> dict[str, Json]:
    """The objects of a spec, by kind and name; nothing where it is refused."""
    if kind in _MODELS:
        return {_name_of(each): each for each in _cluster_objects(kind, spec)}
    outcome = _world().outcome_of(kind, spec, _MADE, _SECONDS)
    if isinstance(outcome, str) or not outcome[0]:
        return {}
    found = {_name_of(each): each for each in outcome[0]}
    return found | {"command lines": dict(_command_lines(kind, spec))}


def raised_for(kind: Resource, spec: Json) -> list[str]:
    """The exceptions of the operator while it reconciles an object with this spec."""
    return _world().raised_for(kind, spec, _SECONDS)


def _name_of(tree: Json) -> str:
    return f"{tree.get('kind')} {tree['metadata']['name'].rstrip('0123456789')}"


def _cluster_objects(kind: Resource, spec: Json) -> list[Json]:
    tree = {"metadata": {"name": "m", "namespace": "ns"}, "spec": spec}
    try:
        cluster: TidbCluster | DMCluster = with_defaults(decode(tree, _MODELS[kind]))
        return [] if validate(cluster) else list(desired_objects(cluster, "discovery:1"))
    except InvalidField:
        return []


def _command_lines(kind: Resource, spec: Json) -> Iterator[tuple[str, object]]:
    """The arguments of BR, Dumpling, TiDB Lightning and tikv-ctl, and the configuration file of Lightning."""
    tree = {"metadata": {"name": "NAME", "namespace": "default"}, "spec": spec}
    dump = Path("/backup/dump")
    if kind == BACKUPS:
        backup = with_backup_defaults(decode(tree, Backup))
        yield "br", backup_arguments(backup, cluster_tls=True)
        yield "br log", log_arguments(backup, "log-start", "", "", cluster_tls=True)
        if (access := backup.spec.from_) is not None:
            yield "dumpling", dumpling_arguments(backup.spec, Login(access.host, access.port, access.user, "x"), dump)
    elif kind == RESTORES:
        restore = with_restore_defaults(decode(tree, Restore))
        point = PointInTime("0") if restore.spec.restore_mode == "pitr" else None
        yield "br", restore_arguments(restore, point, cluster_tls=True)
        if (access := restore.spec.to) is not None:
            login = Login(access.host, access.port, access.user, "x")
            yield "lightning", lightning_arguments(restore.spec, login, dump, Path("/tmp/lightning.toml"))
            yield "lightning.toml", lightning_config(login, dump)
    elif kind == COMPACT_BACKUPS:
        yield "br", storage_flags(with_compact_defaults(decode(tree, CompactBackup)).spec)


@cache
def _world() -> MutantWorld:
    return MutantWorld(1)

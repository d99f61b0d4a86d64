"""`kubectl tidb backup`: one more backup of a cluster, like those that its schedule or its user makes."""

import argparse
from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import structs

from apis.backup_defaulting import with_backup_defaults
from apis.backups import Backup, BackupSpec, is_incremental
from apis.decoding import decode
from apis.shared import Metadata
from apis.storage_providers import Provider
from apis.validation.backups import validate_backup
from cli.failures import Failure
from cli.tidb.archives import Archives, add_waiting, create, is_of, named, read_archives
from cli.tidb.clusters import find_cluster
from cli.tidb.command import Command
from cli.tidb.session import Session
from kube.resources import BACKUPS
from member.backups import naming
from member.backups.schedules import scheduled_backup


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("cluster", metavar="CLUSTER", help="NAME or tc/NAME")
    like = "a BackupSchedule or Backup whose storage and settings are used (default: the cluster's only schedule)"
    parser.add_argument("--like", default="", metavar="NAME", help=like)
    parser.add_argument("--name", default="", help="the name of the Backup (default: CLUSTER and the time)")
    add_waiting(parser)


def _run(session: Session, given: argparse.Namespace, _: Sequence[str]) -> int:
    found = find_cluster(session.client, session.namespace, given.cluster)
    name, now = found.object.metadata.name, session.clock.wall()
    archives = read_archives(session.client, session.namespace)
    spec = _spec(session, archives, given.like or _usual(archives, session.namespace, name), now)
    meta = Metadata(name=given.name or naming.scheduled_name(name, now), namespace=session.namespace)
    backup = Backup(metadata=meta, spec=spec)
    if not is_of(with_backup_defaults(backup), session.namespace, name):
        raise Failure(f"--like {given.like}: it does not back {found.name} up with BR; name another one")
    return create(session, BACKUPS, backup, validate_backup(with_backup_defaults(backup)), given)


def _usual(archives: Archives, namespace: str, cluster: str) -> str:
    """The only schedule of a cluster. Raises Failure."""
    templates = {
        name: Backup(metadata=each.metadata, spec=each.spec.backup_template)
        for name, each in archives.schedules.items()
    }
    own = [name for name, each in templates.items() if is_of(with_backup_defaults(each), namespace, cluster)]
    if len(own) == 1:
        return own[0]
    backups = [name for name, each in archives.backups.items() if is_of(each, namespace, cluster)]
    if not own and not backups:
        raise Failure(
            f"{cluster} has neither a BackupSchedule nor a Backup whose storage could be used; "
            "write the first one as docs/backup.md shows"
        )
    raise Failure(f"name with --like what the backup is like: there is {named([*own, *backups])}")


def _spec(session: Session, archives: Archives, like: str, now: datetime) -> BackupSpec:
    """The spec of a schedule or a Backup, with a place of its own for the files. Raises Failure."""
    if like in archives.schedules:
        schedule = archives.schedules[like]
        # beside itself, too: its own backup may be due in this second
        return decode(scheduled_backup(schedule, now, archives.schedules.values()), Backup).spec
    known = archives.backup(like).spec
    if known.backup_mode != "snapshot" or known.br is None or is_incremental(known.br.options):
        raise Failure(f"Backup {like} is no full snapshot by BR; name another one, or write the Backup yourself")
    # as written, without defaults
    spec = decode(session.client.get(BACKUPS, like, session.namespace).decode(), Backup).spec
    return structs.replace(spec, **_beside(like, spec, naming.time_in_name(now)))


def _beside(like: str, spec: BackupSpec, time: str) -> Mapping[str, Provider]:
    """The storage with a place beside an earlier backup, whose deletion must not delete this one's files."""
    return {name: structs.replace(each, prefix=_prefix(like, each, time)) for name, each in spec.providers.items()}


def _prefix(like: str, provider: Provider, time: str) -> str:
    """The prefix of an earlier backup with this time in place of its own. Raises Failure."""
    before = provider.prefix.strip("/")
    if naming.time_of_name(before[-len(time) :]):
        before = before[: -len(time)].rstrip("-")
    if not before:
        raise Failure(
            f"Backup {like} is at the root of its storage, beside which is no room; write the Backup yourself"
        )
    return f"{before}-{time}"


BACKUP = Command(
    _run,
    _add_arguments,
    details="The operator runs the Backup; what it needs is in docs/backup.md. Its files get a place of their own.",
)

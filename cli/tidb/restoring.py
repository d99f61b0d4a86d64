"""`kubectl tidb restore`: a cluster is filled from a backup, as it was then or at a later time that a log reaches."""

import argparse
from collections.abc import Iterator, Sequence

from msgspec import structs

from apis import tso
from apis.backup_defaulting import with_restore_defaults
from apis.backup_shared import BRConfig, JobSpec
from apis.backups import Backup, is_incremental
from apis.restores import Restore, RestoreSpec
from apis.shared import Metadata
from apis.storage_providers import StorageProvider
from apis.times import stamp
from apis.validation.backups import validate_restore
from cli.failures import Failure
from cli.tidb.archives import Archives, add_waiting, create, is_of, read_archives, span, span_in_words
from cli.tidb.clusters import Found, find_cluster
from cli.tidb.command import Command
from cli.tidb.output import Page
from cli.tidb.session import Session
from controllers.backup.chains import bounds, is_complete, moment
from kube.objects import Json
from kube.resources import RESTORES
from member.backups import naming


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("cluster", metavar="CLUSTER", help="NAME or tc/NAME")
    source = "a Backup of this namespace, of any cluster (default with --until: the log backup of CLUSTER itself)"
    parser.add_argument("--from", dest="source", default="", metavar="BACKUP", help=source)
    until = "the moment to restore to, which needs a log backup: a TSO, or a time such as 2026-11-29T10:00:00Z"
    parser.add_argument("--until", default="", metavar="TIME", help=until)
    parser.add_argument("--list", action="store_true", help="show what can be restored, and create nothing")
    parser.add_argument("--name", default="", help="the name of the Restore (default: CLUSTER and the time)")
    add_waiting(parser)


def _run(session: Session, given: argparse.Namespace, _: Sequence[str]) -> int:
    found = find_cluster(session.client, session.namespace, given.cluster)
    archives = read_archives(session.client, session.namespace)
    if given.list:
        document = _listed(archives)
        session.output.show(document, lambda: _page(document))
        return 0
    base, log = _source(found, archives, given)
    name, namespace = found.object.metadata.name, session.namespace
    meta = Metadata(name=given.name or naming.scheduled_name(name, session.clock.wall()), namespace=namespace)
    made = Restore(metadata=meta, spec=_spec(base, log, name, given.until))
    return create(session, RESTORES, made, validate_restore(with_restore_defaults(made)), given)


# What can be restored


def _listed(archives: Archives) -> Json:
    whole = [backup for backup in archives.backups.values() if _is_restorable(backup)]
    logs = ((backup, span(archives, backup)) for backup in archives.logs())
    return {
        "backups": [_identity(backup) | {"at": _time(moment(backup.status.commit_ts))} for backup in whole],
        "logs": [
            _identity(each) | {"first": _time(found[0]), "last": _time(found[1])} for each, found in logs if found
        ],
        "unread": [{"what": what, "why": why} for what, why in archives.unreadable.items()],
    }


def _identity(backup: Backup) -> Json:
    return {"name": backup.metadata.name, "cluster": backup.spec.br.cluster if backup.spec.br else ""}


def _time(moment: int) -> str:
    return stamp(tso.time_of(moment))


def _page(document: Json) -> Page:
    def lines() -> Iterator[str]:
        for backup in document["backups"]:
            yield f"--from {backup['name']}: {backup['cluster']} at {backup['at']}"
        for each in document["logs"]:
            times = f"any time from {each['first']} to {each['last']}"
            yield f"--from {each['name']} --until TIME: {each['cluster']} at {times}"
        if not document["backups"] and not document["logs"]:
            yield "There is no backup that could be restored."
        for each in document["unread"]:
            yield f"{each['what']} cannot be read: {each['why']}"

    return lines()


def _is_restorable(backup: Backup) -> bool:
    br = backup.spec.br
    is_full = br is not None and not is_incremental(br.options)
    return is_full and backup.spec.backup_mode == "snapshot" and is_complete(backup)


# The source


def _source(found: Found, archives: Archives, given: argparse.Namespace) -> tuple[Backup, Backup | None]:
    """The snapshot to restore, and the log that leads from it to `--until`. Raises Failure."""
    if not given.source and not given.until:
        raise Failure("name what to restore with --from or --until; --list shows what can be restored")
    source = archives.backup(given.source) if given.source else None
    if given.until:
        return _until(found, archives, source, _moment(given.until))
    assert source is not None
    if source.spec.backup_mode == "log":
        raise Failure(f"Backup {given.source} is a log; name the moment to restore to with --until")
    if not _is_restorable(source):
        raise Failure(f"Backup {given.source} is no Complete full snapshot by BR; --list shows what can be restored")
    return source, None


def _moment(text: str) -> int:
    try:
        return tso.parse(text)
    except ValueError as error:
        raise Failure(f"--until {error}") from None


def _until(found: Found, archives: Archives, source: Backup | None, until: int) -> tuple[Backup, Backup]:
    """The last snapshot before a moment, and the log that reaches it. Raises Failure."""
    meta = found.object.metadata
    spans: list[str] = []
    for log in archives.logs():
        below = archives.bases(log)
        if source is None:
            is_asked = is_of(log, meta.namespace, meta.name)
        else:
            is_asked = source in (log, *below)
            below = [backup for backup in below if source in (log, backup)]
        if not is_asked or not below:
            continue
        before = [backup for backup in below if moment(backup.status.commit_ts) <= until]
        if before and until <= bounds(log)[1]:
            return before[-1], log
        first = moment(below[0].status.commit_ts)
        spans.append(f"{log.metadata.name} reaches {span_in_words((first, bounds(log)[1]))}")
    whose = f"Backup {source.metadata.name}" if source else found.name
    raise Failure(f"no log of {whose} reaches --until: {'; '.join(spans) or 'there is none with a snapshot below it'}")


# The object

_OF_JOB = [
    name for name in JobSpec.__struct_fields__ if name not in {*StorageProvider.__struct_fields__, "br", "resources"}
]
"""The fields of a Backup that its Restore needs, too."""


def _spec(base: Backup, log: Backup | None, cluster: str, until: str) -> RestoreSpec:
    """A Restore of a snapshot, or of a log up to a moment, with the access and the images of the Backup."""
    assert base.spec.br is not None
    read = log or base
    common = {name: value for name, value in structs.asdict(read.spec).items() if name in _OF_JOB} | read.spec.providers
    known = base.spec.br
    br = BRConfig(cluster=cluster, db=known.db, table=known.table, send_cred_to_tikv=known.send_cred_to_tikv)
    spec = RestoreSpec(backup_type=base.spec.backup_type, br=br, **common)
    if log is None:
        return spec
    return structs.replace(
        spec,
        restore_mode="pitr",
        pitr_restored_ts=until,
        pitr_full_backup_storage_provider=structs.replace(StorageProvider(), **base.spec.providers),
    )


RESTORE = Command(
    _run,
    _add_arguments,
    details="The operator runs the Restore; BR refuses to restore tables that exist. The guide is docs/backup.md.",
)

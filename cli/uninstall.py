"""`tidb-operator uninstall --check`: list the objects that nothing could delete without the operator.

Only the operator removes its finalizers. If such an object is deleted after the operator, it remains forever, together
with the CustomResourceDefinition of its kind. The command writes nothing.
"""

import argparse
import os
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

import msgspec

from cli.tidb.connection import Kubeconfig
from cli.tidb.output import FORMATS, Columns, Page, output_for
from kube.client import Client
from kube.errors import Forbidden, NotFound
from kube.objects import Json, Object, condition_of
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
from ports.clock import SystemClock

FREE, HANGS = 0, 1

ORDER = (
    BACKUP_SCHEDULES,
    COMPACT_BACKUPS,
    RESTORES,
    BACKUPS,
    TIDB_MONITORS,
    TIDB_INITIALIZERS,
    TIDB_DASHBOARDS,
    TIDB_NG_MONITORINGS,
    DM_CLUSTERS,
    TIDB_CLUSTERS,
)
"""All kinds in the order of deletion: creators first, dependencies last."""

_OURS = "tidb.pingcap.com/"
_LEFT: Mapping[Resource, str] = {
    BACKUPS: "the operator to end its Jobs and to keep or remove its files as spec.cleanPolicy says",
    TIDB_MONITORS: "the operator to delete its ClusterRole and ClusterRoleBinding",
}
_LOG = "the operator to stop the log backup in the cluster, and to keep or remove its files as spec.cleanPolicy says"


@dataclass(frozen=True, slots=True)
class Held:
    """An object with a finalizer of the operator, and what it will wait for."""

    resource: Resource
    seen: Object

    @property
    def is_log(self) -> bool:
        """True for a log backup: it is deleted after snapshots that restores need with it."""
        return self.resource is BACKUPS and (self.seen.decode().get("spec") or {}).get("backupMode") == "log"

    @property
    def waits_for(self) -> str:
        """What keeps it: its status if it is being deleted, else the operator's future work."""
        waiting = condition_of((self.seen.decode().get("status") or {}).get("conditions") or (), "Waiting")
        if self.seen.metadata.deletion_timestamp and waiting.get("status") == "True":
            return str(waiting.get("message"))
        return _LOG if self.is_log else _LEFT.get(self.resource, "the operator")

    @property
    def delete(self) -> str:
        """The command that deletes it, while the operator runs."""
        return f"kubectl delete {self._named}"

    @property
    def release(self) -> str:
        """The command that releases it without the operator; the pending work is skipped."""
        others = [each for each in self.seen.metadata.finalizers if not each.startswith(_OURS)]
        patch = msgspec.json.encode({"metadata": {"finalizers": others or None}}).decode()
        return f"kubectl patch {self._named} --type=merge -p '{patch}'"

    @property
    def _named(self) -> str:
        meta = self.seen.metadata
        return f"{self.resource.kind.lower()} {meta.name} -n {meta.namespace}"

    @property
    def document(self) -> Json:
        """The object for programs."""
        meta = self.seen.metadata
        return {
            "kind": self.resource.kind,
            "namespace": meta.namespace,
            "name": meta.name,
            "finalizers": [each for each in meta.finalizers if each.startswith(_OURS)],
            "isBeingDeleted": meta.deletion_timestamp is not None,
            "waitsFor": self.waits_for,
            "delete": self.delete,
            "release": self.release,
        }


@dataclass(frozen=True, slots=True)
class Report:
    """The objects that would hang, in the order of deletion, and the kinds that the user may not list."""

    held: Sequence[Held]
    unseen: Sequence[Resource]

    @property
    def code(self) -> int:
        """The exit code of the command: unreadable kinds may hang."""
        return HANGS if self.held or self.unseen else FREE


def run(arguments: Sequence[str], environ: Mapping[str, str] = os.environ) -> int:
    """Run the command; exit code 0 if nothing would hang, 1 if something would or may. Raises Failure, ApiError, …"""
    parser = argparse.ArgumentParser(
        "tidb-operator uninstall",
        description=textwrap.dedent(__doc__),
        epilog="Exit codes: 0 nothing would hang, 1 something would, or objects of a kind could not be listed.",
        allow_abbrev=False,
    )
    parser.add_argument("--check", action="store_true", required=True, help="say what would hang; nothing is deleted")
    parser.add_argument("--context", default="", help="a context of the kubeconfig (default: the current one)")
    parser.add_argument("--kubeconfig", default="", metavar="FILE", help="default: $KUBECONFIG, else ~/.kube/config")
    parser.add_argument("-o", "--output", default=FORMATS[0], choices=FORMATS, help="default: table")
    given = parser.parse_args(arguments)
    with closing(Kubeconfig(given.kubeconfig, given.context, environ, SystemClock())) as server:
        report = check(server.client)
    document = {
        "objects": [held.document for held in report.held],
        "notListed": [resource.kind for resource in report.unseen],
        "order": [resource.kind for resource in ORDER],
    }
    output_for(given.output, environ, no_color=False).show(document, lambda: page_of(report))
    return report.code


def check(client: Client) -> Report:
    """Check the objects of all kinds in all namespaces. Raises ApiError, TransportError."""
    held: list[Held] = []
    unseen: list[Resource] = []
    for resource in ORDER:
        try:
            there = client.list_page(resource).items
        except NotFound:  # its CRD is not installed
            continue
        except Forbidden:
            unseen.append(resource)
            continue
        ours = (Held(resource, obj) for obj in there if any(map(_is_ours, obj.metadata.finalizers)))
        held += sorted(ours, key=lambda each: (not each.is_log, each.seen.key))
    return Report(held, unseen)


def _is_ours(finalizer: str) -> bool:
    return finalizer.startswith(_OURS)


def page_of(report: Report) -> Page:
    """The report for people."""

    def lines() -> Iterator[Columns | str]:
        for resource in report.unseen:
            yield f"You may not list {resource.plural} in all namespaces: whether one would hang is not known."
        if not report.held:
            yield "No object that could be listed has a finalizer of the operator."
            return
        yield f"{len(report.held)} would hang without the operator. While it runs, delete them in this order:"
        table = Columns("OBJECT", "WAITS FOR")
        for held in report.held:
            table.add(f"{held.resource.kind} {held.seen.key}", held.waits_for)
        yield table
        yield "Where the operator has gone, start it again; or let them go, with what they wait for left undone:"
        for held in report.held:
            yield f"  {held.release}"

    return lines()

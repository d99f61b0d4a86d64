"""Reads for `status`: the cluster and everything that belongs to it, as far as the user may read it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from cli.tidb.clusters import Found
from cli.tidb.pods import ClusterPod, list_pods
from cli.tidb.status.report import Unread
from kube.client import Client
from kube.errors import Forbidden, NotFound
from kube.objects import Json
from kube.resources import BACKUP_SCHEDULES, BACKUPS, EVENTS, TIDB_MONITORS, Resource

T = TypeVar("T")


@dataclass(slots=True)
class Facts:
    """A cluster and its surroundings. `unread` lists what could not be read."""

    found: Found
    pods: list[ClusterPod] = field(default_factory=list)
    events: list[Json] = field(default_factory=list)
    backups: list[Json] = field(default_factory=list)
    schedules: list[Json] = field(default_factory=list)
    monitors: list[Json] = field(default_factory=list)
    unread: list[Unread] = field(default_factory=list)


def read_facts(client: Client, found: Found) -> Facts:
    """All facts about a cluster. Raises ApiError, TransportError."""
    facts, meta = Facts(found), found.object.metadata

    def those_of(resource: Resource, field_selector: str = "") -> list[Json]:
        page = attempt(
            facts.unread,
            resource.plural,
            lambda: client.list_page(resource, meta.namespace, field_selector=field_selector),
        )
        return [item.decode() for item in page.items] if page else []

    facts.pods = attempt(facts.unread, "pods", lambda: list_pods(client, found.cluster)) or []
    facts.events = those_of(EVENTS, f"involvedObject.kind={found.resource.kind},involvedObject.uid={meta.uid}")
    facts.backups = those_of(BACKUPS)
    facts.schedules = those_of(BACKUP_SCHEDULES)
    facts.monitors = those_of(TIDB_MONITORS)
    return facts


def attempt(unread: list[Unread], what: str, read: Callable[[], T], verb: str = "list") -> T | None:
    """The result of a read; None, with an entry in `unread`, if the user may not or the server lacks the kind."""
    try:
        return read()
    except Forbidden:
        unread.append(Unread(what, f"you may not {verb} them"))
    except NotFound:
        unread.append(Unread(what, "this API server does not have them"))
    return None

"""`kubectl tidb pause` and `resume`: `spec.paused` (scheduler-deployment.md 12.4)."""

import argparse
from collections.abc import Iterator, Sequence

from cli.tidb.clusters import Found, find_cluster, spec_patch
from cli.tidb.command import Command
from cli.tidb.output import Page
from cli.tidb.session import Session
from kube.objects import Json


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("clusters", nargs="+", metavar="CLUSTER", help="NAME, tc/NAME or dc/NAME")


def _pause(session: Session, given: argparse.Namespace, _: Sequence[str]) -> int:
    return _set(session, given.clusters, paused=True)


def _resume(session: Session, given: argparse.Namespace, _: Sequence[str]) -> int:
    return _set(session, given.clusters, paused=False)


def _set(session: Session, names: Sequence[str], *, paused: bool) -> int:
    # find all clusters before changing the first
    found = [find_cluster(session.client, session.namespace, each) for each in names]
    done = [_set_one(session, each, paused=paused) for each in found]
    session.output.show({"clusters": done}, lambda: _page(done))
    return 0


def _set_one(session: Session, found: Found, *, paused: bool) -> Json:
    changed = found.cluster.spec.paused is not paused
    if changed:
        meta = found.object.metadata
        session.client.patch(found.resource, meta.name, meta.namespace, spec_patch(found.cluster, {"paused": paused}))
    return found.identity | {"paused": paused, "changed": changed}


def _page(done: Sequence[Json]) -> Page:
    def lines() -> Iterator[str]:
        for each in done:
            already = "" if each["changed"] else "already "
            yield f"{each['kind']} {each['namespace']}/{each['name']} {already}{_state(paused=each['paused'])}"

    return lines()


def _state(*, paused: bool) -> str:
    return "paused: nothing is changed until it is resumed" if paused else "resumed"


PAUSE = Command(_pause, _add_arguments)
RESUME = Command(_resume, _add_arguments)

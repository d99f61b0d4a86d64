"""`kubectl tidb status`: a page about one cluster, or a line for each."""

import argparse
import sys
from collections.abc import Sequence

import msgspec

from cli.failures import Failure
from cli.tidb.clusters import clusters_of, find_cluster, read_cluster
from cli.tidb.command import Command
from cli.tidb.session import Session
from cli.tidb.status.facts import read_facts
from cli.tidb.status.page import page_of, page_of_all
from cli.tidb.status.reporting import report_of, summary
from controller_manager.shutdown import stopping_on_signals
from ports.foreign_text import printable
from ports.stopping import Stop

_EVERY = 2.0
"""Seconds between two refreshes."""

_CLEAR = "\x1b[H\x1b[2J\x1b[3J"


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("cluster", nargs="?", metavar="CLUSTER", help="NAME, tc/NAME or dc/NAME; without it, all")
    parser.add_argument("-A", "--all-namespaces", action="store_true", help="without CLUSTER: all namespaces")
    parser.add_argument("--problems", action="store_true", help="without CLUSTER: those that are not Ready or need you")
    parser.add_argument("-w", "--watch", action="store_true", help="look again and again until interrupted")


def _run(session: Session, given: argparse.Namespace, _: Sequence[str]) -> int:
    if not given.watch:
        _show(session, given)
        return 0
    with stopping_on_signals(stop := Stop()):
        while not stop.is_set():
            if session.output.colours:
                sys.stdout.write(_CLEAR)
            _show(session, given)
            stop.wait(session.clock, _EVERY)
    return 0


def _show(session: Session, given: argparse.Namespace) -> None:
    if not given.cluster:
        _show_all(session, "" if given.all_namespaces else session.namespace, only_problems=given.problems)
    elif given.all_namespaces or given.problems:
        flag = "--all-namespaces" if given.all_namespaces else "--problems"
        raise Failure(f"{flag} is for a list of clusters: leave it or {given.cluster} out")
    else:
        _show_one(session, given.cluster)


def _show_one(session: Session, name: str) -> None:
    found = find_cluster(session.client, session.namespace, name)
    report = report_of(read_facts(session.client, found))
    session.output.show(msgspec.to_builtins(report), lambda: page_of(report, session.clock.wall()))


def _show_all(session: Session, namespace: str, *, only_problems: bool) -> None:
    found, unread = [], False
    for resource, each in clusters_of(session.client, namespace):
        try:
            found.append(summary(read_cluster(resource, each)))
        except Failure as failure:
            # a failure for one cluster must not hide the others
            print(printable(str(failure), lines=True), file=sys.stderr)
            unread = True
    if only_problems:
        found = [each for each in found if not each.ready or any(wait.needs_user for wait in each.waits)]
    document = {"clusters": msgspec.to_builtins(found)}
    if not found and session.output.is_for_people:
        where = f"namespace {namespace}" if namespace else "any namespace"
        if not unread:
            print(f"no cluster{' with problems' if only_problems else ''} in {where}")
        return
    session.output.show(document, lambda: page_of_all(found, session.clock.wall(), with_namespace=not namespace))


STATUS = Command(_run, _add_arguments)

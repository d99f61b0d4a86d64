"""`kubectl tidb export-v2`: reads a TidbCluster, and writes nothing to Kubernetes."""

import argparse
from collections.abc import Sequence

import yaml

from apis.problem import InvalidField
from apis.tidbcluster import TidbCluster
from cli.documents import ReadableDumper
from cli.failures import Failure
from cli.terminal import escaped
from cli.tidb.clusters import find_cluster
from cli.tidb.command import Command
from cli.tidb.export_v2.groups import manifests, refused
from cli.tidb.export_v2.leftovers import without_counterpart
from cli.tidb.output import FORMATS
from cli.tidb.session import Session
from kube.objects import Json

_LONGEST_NAME = 40
"""The most characters that v2's groups accept."""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("cluster", metavar="CLUSTER", help="NAME or tc/NAME")
    parser.add_argument("--name", metavar="NAME", help="the name of v2's objects; otherwise CLUSTER-v2")


def _run(session: Session, given: argparse.Namespace, _: Sequence[str]) -> int:
    found = find_cluster(session.client, session.namespace, given.cluster)
    if not isinstance(found.cluster, TidbCluster):
        raise Failure(f"{found.name}: only a TidbCluster can be exported; v2 has DMGroup and DMWorkerGroup for DM")
    name = given.name or f"{found.object.metadata.name}-v2"
    if len(name) > _LONGEST_NAME:
        raise Failure(f"--name {name}: v2 accepts names of at most {_LONGEST_NAME} characters; choose a shorter one")
    if name == found.object.metadata.name:
        raise Failure(f"--name {name}: v2's Services would have the names of v1's; choose another name")
    try:
        objects = manifests(found.cluster, name)
        left = [*without_counterpart(found.object.decode()), *refused(found.cluster, name)]
    except InvalidField as error:
        raise Failure(f"{found.name}: {error}") from None
    listed = [{"field": field, "note": note} for field, note in left]
    document = found.identity | {"manifests": objects, "withoutCounterpart": listed}
    # a page would wrap long lines of a configuration
    session.output.show(document, lambda: (), {FORMATS[0]: lambda: escaped(_text(objects, listed))})
    return 0


def _text(objects: Sequence[Json], left: Sequence[Json]) -> str:
    """Manifests for `kubectl apply -f -`, with the rest in comments."""
    head = ["# Without a counterpart in TiDB Operator v2:"] if left else []
    comments = [*head, *(f"#   {each['field']}: {each['note']}" for each in left)]
    written: str = yaml.dump_all(objects, Dumper=ReadableDumper, sort_keys=False, explicit_start=True)
    return "".join(f"{line}\n" for line in comments) + written


EXPORT_V2 = Command(
    _run,
    _add_arguments,
    details="The groups start without data: docs/adr/0017 says how it gets there. Nothing in Kubernetes is changed.",
)

"""`kubectl tidb doctor`; `tidb-operator doctor` is the same."""

import argparse
from collections.abc import Sequence

from cli.doctor.diagnosis import diagnose
from cli.doctor.reading import NOT_FOUND_OUT, CannotLook, read
from cli.doctor.rendering import Diagnosis, document, page
from cli.failures import Failure
from cli.tidb.command import Command
from cli.tidb.session import Session

HEALTHY, PROBLEMS = 0, 1


def _run(session: Session, given: argparse.Namespace, _: Sequence[str]) -> int:
    """Raises CannotLook."""
    if given.all_namespaces and given.clusters:
        raise CannotLook(f"{given.clusters[0]}: leave out -A; -n names the namespace of a cluster")
    namespace = "" if given.all_namespaces else session.namespace
    try:
        facts = read(session.client, namespace, given.clusters, session.clock.wall())
    except CannotLook:
        raise
    except Failure as failure:
        raise CannotLook(str(failure)) from failure
    diagnoses = [Diagnosis(each, diagnose(each)) for each in facts]
    session.output.show(document(diagnoses), lambda: page(diagnoses))
    return HEALTHY if all(diagnosis.is_healthy for diagnosis in diagnoses) else PROBLEMS


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    what = "a TidbCluster, or a DMCluster such as dc/sync (default: all of the namespace)"
    parser.add_argument("clusters", nargs="*", metavar="CLUSTER", help=what)
    parser.add_argument("-A", "--all-namespaces", action="store_true", help="without CLUSTER: all namespaces")


DOCTOR = Command(
    _run,
    _add_arguments,
    details=(
        "It writes nothing, names what you may not read, and examines the rest. Of several clusters it shows problems "
        "first, and one line for each kind of warning. docs/troubleshooting.md lists the causes. Exit codes: 0 no "
        f"problem (warnings do not count), 1 problems, {NOT_FOUND_OUT} the clusters could not be read."
    ),
)

"""`kubectl tidb logs`: the logs of a cluster's pods, several at once."""

import argparse
from collections.abc import Iterator, Sequence

from cli.failures import Failure
from cli.tidb.clusters import find_cluster
from cli.tidb.command import Command
from cli.tidb.log_lines import Source, follow, one_after_another, printer
from cli.tidb.pods import ClusterPod, list_pods
from cli.tidb.session import Session
from ports import duration

_LINES_OF_EACH = 20
"""The number of lines per pod if there are several."""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("cluster", metavar="CLUSTER", help="NAME, tc/NAME or dc/NAME")
    parser.add_argument("what", nargs="?", metavar="COMPONENT|POD", help="such as tikv, or basic-tikv-1; default: all")
    parser.add_argument("-f", "--follow", action="store_true", help="follow new lines")
    tail = f"the last lines of each (default: all of one pod, {_LINES_OF_EACH} of each of several)"
    parser.add_argument("--tail", type=int, metavar="N", help=tail)
    parser.add_argument("--since", metavar="TIME", help="no older lines than that, such as 5m")
    parser.add_argument("-c", "--container", metavar="NAME", help="default: the component's own container")
    parser.add_argument("--all-containers", action="store_true", help="logs of all containers of each pod")
    parser.add_argument("-p", "--previous", action="store_true", help="logs of the run before a restart")
    parser.add_argument("--timestamps", action="store_true", help="with the time before each line")


def _run(session: Session, given: argparse.Namespace, _: Sequence[str]) -> int:
    options = _options(given)
    found = find_cluster(session.client, session.namespace, given.cluster)
    pods = _chosen(list_pods(session.client, found.cluster), given.what, found.name)
    sources = [Source(pod.object, container) for pod in pods for container in _containers(pod, given)]
    if len(sources) > 1:
        options.setdefault("tailLines", str(_LINES_OF_EACH))
    say = printer(session.output, with_names=len(sources) > 1)
    read = follow if given.follow else one_after_another
    return read(session.client, sources, options, say)


def _options(given: argparse.Namespace) -> dict[str, str]:
    """The flags as options of the API. Raises Failure."""
    if given.output == "yaml":
        raise Failure("logs are lines: -o json prints an object for each, -o yaml is not possible")
    flags = {"follow": given.follow, "previous": given.previous, "timestamps": given.timestamps}
    options = {name: "true" for name, is_set in flags.items() if is_set}
    if given.tail is not None:
        options["tailLines"] = str(given.tail)
    if given.since:
        try:
            options["sinceSeconds"] = str(max(int(duration.seconds(given.since)), 1))
        except ValueError as error:
            raise Failure(f"--since {given.since}: {error}") from None
    return options


def _chosen(pods: Sequence[ClusterPod], what: str | None, cluster: str) -> list[ClusterPod]:
    """The pods of a component, a single one, or all. Raises Failure without any."""
    chosen = [pod for pod in pods if what in (None, pod.component, pod.name)]
    if not chosen:
        known = ", ".join(dict.fromkeys([*(pod.component for pod in pods), *(pod.name for pod in pods)]))
        raise Failure(f"{cluster} has no pods{f' {what}' if what else ''}; it has {known or 'none at all'}")
    return chosen


def _containers(pod: ClusterPod, given: argparse.Namespace) -> Iterator[str]:
    """The requested containers of a pod. Raises Failure if none has the name."""
    spec = pod.object.decode()["spec"]
    names = [container["name"] for container in spec["containers"]]
    hidden = [each["name"] for each in spec.get("initContainers") or ()]
    if given.all_containers:
        yield from names
    elif given.container is None:
        yield pod.component if pod.component in names else names[0]
    elif given.container in (*names, *hidden):
        yield given.container
    else:
        raise Failure(f"pod {pod.name} has no container {given.container}; it has {', '.join((*names, *hidden))}")


LOGS = Command(_run, _add_arguments)

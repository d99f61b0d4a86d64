"""The state of commands on pods, shown in the status of their cluster, because events are gone after an hour.

The controller of pods writes the state, and the controller of clusters reads it. Both hold the lock of the cluster's
key, except when the user has withdrawn a command.
"""

from collections.abc import Mapping
from typing import TypeAlias

from controllers.memory import Memory
from kube.objects import Object
from kube.reading import Lister
from member.observed.command_annotations import is_commanded
from member.outcome import Done, NotDone, Outcome

Commands: TypeAlias = Memory[dict[str, NotDone]]
"""The outcomes of unfinished commands, by the key of the cluster and the name of the pod."""


def note(commands: Commands, cluster: str, pod: str, outcome: Outcome) -> bool:
    """Note the outcome of the command of a pod; return True if its reason has changed, so that the cluster must sync.

    A change of the message alone, e.g. the number of leaders left, is no reason for an extra sync.
    """
    known = commands.of(cluster)
    before = known.pop(pod, None)
    if not isinstance(outcome, Done):
        known[pod] = outcome
    return _reason(before) != _reason(known.get(pod))


def not_done(commands: Commands, cluster: Object, pods: Lister) -> Mapping[str, NotDone]:
    """The unfinished commands that pods of the cluster carry, sorted by pod; withdrawn commands are left out."""
    # a copy, because withdrawn commands are removed without the lock
    namespace, known = cluster.metadata.namespace, {**(commands.find(cluster.key) or {})}
    carriers = {name: pods.get(namespace, name) for name in known}
    carried = sorted(name for name, pod in carriers.items() if pod is not None and is_commanded(pod))
    return {f"command of pod {name}": known[name] for name in carried}


def _reason(outcome: NotDone | None) -> str:
    return outcome.reason if outcome else ""

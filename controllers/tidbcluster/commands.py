"""How the commands of pods stand, which the status of their cluster says as well: their events are gone in an hour.

The controller of pods notes what becomes of them, that of clusters reads it; each holds the lock of the cluster's key
meanwhile, but when a command has been taken back.
"""

from collections.abc import Mapping
from typing import TypeAlias

from controllers.memory import Memory
from kube.objects import Object
from kube.reading import Lister
from member.commands.annotations import is_commanded
from member.outcome import Done, NotDone, Outcome

Commands: TypeAlias = Memory[dict[str, NotDone]]
"""The commands that are not done, by the key of the cluster and the name of the pod."""


def note(commands: Commands, cluster: str, pod: str, outcome: Outcome) -> bool:
    """Note what has become of the command of a pod; whether the status of its cluster has to say something else.

    How many leaders are left, as messages tell, is no reason to look at the cluster before its time.
    """
    known = commands.of(cluster)
    before = known.pop(pod, None)
    if not isinstance(outcome, Done):
        known[pod] = outcome
    return _reason(before) != _reason(known.get(pod))


def not_done(commands: Commands, cluster: Object, pods: Lister) -> Mapping[str, NotDone]:
    """What the status says of the commands that pods carry, in order of their names; those taken back are left out."""
    # a copy, since one that is taken back goes without the lock
    namespace, known = cluster.metadata.namespace, {**(commands.find(cluster.key) or {})}
    carriers = {name: pods.get(namespace, name) for name in known}
    carried = sorted(name for name, pod in carriers.items() if pod is not None and is_commanded(pod))
    return {f"command of pod {name}": known[name] for name in carried}


def _reason(outcome: NotDone | None) -> str:
    return outcome.reason if outcome else ""

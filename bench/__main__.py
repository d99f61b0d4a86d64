"""`python -m bench [SUITE …]`: run all suites, or the named ones."""

import sys
from collections.abc import Callable, Mapping
from functools import partial

from bench import (
    bringup,
    clients,
    hostile,
    informers,
    isolation,
    lifecycle,
    limit,
    lists,
    memories,
    object_storage,
    plans,
    rehearsals,
    scheduling,
    simulator,
    take_over,
    thousand,
    watch,
    workqueue,
)
from bench.figures import logs_to_stderr

_SUITES: Mapping[str, Callable[[], int]] = {
    "workqueue": workqueue.main,
    "watch": watch.main,
    "lists": lists.main,
    "informers": informers.main,
    "bringup": bringup.main,
    "isolation": isolation.main,
    "hostile": hostile.main,
    "lifecycle": lifecycle.main,
    "clients": clients.main,
    "take_over": take_over.main,
    "thousand": thousand.main,
    "limit": limit.main,
    "plans": plans.main,
    "rehearsals": rehearsals.main,
    "storage": object_storage.main,
    "scheduling": scheduling.main,
    "simulator": simulator.main,
    "memories": partial(memories.main, ()),
}


def main(names: list[str]) -> int:
    """Run the named suites, in this order."""
    if unknown := set(names) - _SUITES.keys():
        print(f"bench: no suite {', '.join(sorted(unknown))}; there are {', '.join(_SUITES)}", file=sys.stderr)  # noqa: T201
        return 2
    logs_to_stderr()
    return max([_SUITES[name]() for name in names or _SUITES], default=0)


sys.exit(main(sys.argv[1:]))

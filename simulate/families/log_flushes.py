"""A log backup runs while TiKV pods restart, and TiKV does not flush it as requested (lifecycle.md 7.4.1).

`log-flush/roll.silent@0`: a user changes TiKV's configuration, and no TiKV answers a request to flush. `roll.crash@7`:
the operator's process ends right after its seventh write. No roll waits forever, and each restart follows a flush, or
an event that says why not.
"""

from collections.abc import Callable, Iterator, Mapping

from apis import pod_commands
from ports.protobuf import message
from simulate.engine import plan as plans
from simulate.engine.plan import Edit, Fault, InvalidPlan, Plan, World
from simulate.engine.worlds import KEY, NAME
from simulate.families.family import Family

_FLUSH = "/logbackup.LogBackup/FlushNow"
_TIKV = f"{KEY}-tikv-*"
_PORT = 20160
_FOREVER = 0.0
_WRITES = 24
"""The number of writes of a roll at which the operator ends."""
_BUDGET = 900.0
"""Three minutes of silence for each of three pods, and time to restart them."""

_FAILED = message([(1, message([(1, b"demo"), (2, 0), (3, b"another flush is running")]))]).decode()


def _world(verb: str, seconds: float = _FOREVER, /, **arguments: object) -> Callable[[int], Fault]:
    return lambda _: World(at=0.5, verb=verb, arguments=dict(arguments), seconds=seconds)


_TROUBLES: Mapping[str, Callable[[int], Fault] | None] = {
    "none": None,
    "silent": _world("network_cut", target=_TIKV, port=_PORT),
    "silent-for-a-while": _world("network_cut", 30.0, target=_TIKV, port=_PORT),
    "closed": _world("network_cut", target=_TIKV, port=_PORT, refuse=True),
    "too-old": _world("server_pretends", target=_TIKV, path=_FLUSH, method="POST", body="", status=404),
    "failing": _world("server_pretends", target=_TIKV, path=_FLUSH, method="POST", body=_FAILED, status=200),
    "refusing": _world("server_refuses", target=_TIKV, path=_FLUSH),
    "pd-keys": _world("etcd_down", 300.0, cluster=KEY),
    "crash": lambda write: plans.Crash(write=write, when="after"),
    "lost": lambda write: plans.Lost(write=write, when="after"),
}
"""What happens to the flush, or to the operator at a write."""

_CAUSES: Mapping[str, Edit] = {
    "roll": Edit(at=2.0, spec={"tikv": {"config": {"log": {"level": "warn"}}}}),
    "command": Edit(at=2.0, target=f"pods/{NAME}-tikv-1", annotations={pod_commands.EVICT_LEADER: "delete-pod"}),
}
"""What restarts TiKV pods."""


def _plan(rest: str) -> Plan:
    """The plan called `log-flush/<rest>`. Raises InvalidPlan."""
    what, _, write = rest.partition("@")
    cause, _, trouble = what.partition(".")
    if cause not in _CAUSES or trouble not in _TROUBLES or not write.isdecimal():
        known = f"{', '.join(_CAUSES)}; {', '.join(_TROUBLES)}"
        raise InvalidPlan(f"{rest!r} is no `CAUSE.TROUBLE@WRITE` of {known}; the number of a write, 0 without one")
    make = _TROUBLES[trouble]
    begun = World(at=0.1, verb="log_backup", arguments={"cluster": KEY}, seconds=0.0)
    return Plan(
        name=f"{FAMILY.name}/{rest}",
        budget=_BUDGET,
        edits=(_CAUSES[cause],),
        given=(begun,),
        faults=(make(int(write)),) if make else (),
        reference=False,
    )


def _plans() -> Iterator[Plan]:
    for cause in _CAUSES:
        for trouble in _TROUBLES:
            writes = range(1, _WRITES + 1) if trouble in ("crash", "lost") else (0,)
            yield from (_plan(f"{cause}.{trouble}@{write}") for write in writes)


FAMILY = Family("log-flush", _plan, _plans)

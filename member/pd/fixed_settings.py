"""Settings without effect in PD's file: a running PD uses its stored values (defaults-and-validation.md 4.2)."""

from apis.components import component_type
from apis.validation import Running, observe
from apis.validation.changes import without_effect
from kube.events import WARNING
from member.context import ReconcileContext
from member.objects.config_map import in_use_config_map_name

_NO_FILE = Running(configs={"pd": {}})


def tell(ctx: ReconcileContext) -> None:
    """Emit an event, once, about such settings that v1.6 left out of the file and that will now appear in it."""
    found: frozenset[str] = frozenset()
    if without_effect(ctx.tc, _NO_FILE):
        found = frozenset(without_effect(ctx.tc, _in_use(ctx)))
    if found and found != ctx.memory.without_effect:
        what = f"{', '.join(sorted(found))}: has no effect on a running PD; change it with pd-ctl"
        ctx.deps.recorder.event(ctx.owner, WARNING, "NoEffectOnRunningPD", what)
    ctx.memory.without_effect = found


def _in_use(ctx: ReconcileContext) -> Running:
    """The file that the pods use; empty if there are no pods."""
    live = ctx.stateful_set("pd")
    if live is None:
        return Running()
    body = live.decode()
    config_map = ctx.listers.config_maps.get(ctx.namespace, in_use_config_map_name(ctx.tc, "pd", body))
    data = config_map.decode().get("data") or {} if config_map else {}
    file = component_type("pd").config.file
    return observe({"pd": body}, {"pd": data[file]} if file in data else {})

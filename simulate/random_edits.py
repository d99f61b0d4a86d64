"""What users do, at random: one edit, or several that belong together, such as a mistake and its correction."""

from collections.abc import Callable

from apis.components import component_type
from kube.objects import Json
from member import labels
from ports.randomness import Randomness
from simulate.components import profile
from simulate.draws import between, pick
from simulate.mistakes import MISTAKES
from simulate.plan import Edit
from simulate.worlds import NAME, replicas_of

Edits = tuple[Edit, ...]
Make = Callable[[Randomness, float], Edits]
"""Draws the edits of one kind, the first of them at a time in seconds."""

_VERSIONS = ("v8.5.2", "v8.5.3", "v8.5.4")
_LEVELS = ("debug", "info", "warn", "error")

_PODS = replicas_of("small")
"""The pods that every cluster of a random plan has."""

_COMPONENTS = tuple(_PODS)
_WITH_DATA_VOLUME = tuple(each for each in _COMPONENTS if component_type(each).data_volume)
_COMMANDS = tuple((each, *command) for each in _COMPONENTS for command in profile(each).commands)


def random_edits(draw: Randomness, at: float) -> Edits:
    """Something that a user begins at a time, and ends at most two minutes later."""
    return pick(draw, _KINDS)(draw, at)


def random_pod(draw: Randomness, component: str = "") -> str:
    """The name of a pod that is there when a random plan begins."""
    component = component or pick(draw, _COMPONENTS)
    return f"{NAME}-{component}-{draw.integer(0, _PODS[component] - 1)}"


def _scale(draw: Randomness, at: float) -> Edits:
    known = profile(pick(draw, _COMPONENTS))
    return (Edit(at=at, spec={known.name: {"replicas": draw.integer(known.fewest, known.most)}}),)


def _upgrade(draw: Randomness, at: float) -> Edits:
    component, version = pick(draw, ("", *_COMPONENTS)), {"version": pick(draw, _VERSIONS)}
    return (Edit(at=at, spec={component: version} if component else version),)


def _configure(draw: Randomness, at: float) -> Edits:
    level, how = pick(draw, _LEVELS), draw.integer(1, 3)
    change: Json = {"config": {"log": {"level": level}}}
    if how == 1:
        change["configUpdateStrategy"] = "InPlace"
    component = pick(draw, _COMPONENTS)
    if how == 2 and component != "pd":
        change["config"] = f'[log]\nlevel = "{level}"\n'
    return (Edit(at=at, spec={component: change}),)


def _mistake(draw: Randomness, at: float) -> Edits:
    """A mistake in a component; PD's configuration is left alone, since some clusters depend on what is in it."""
    component = pick(draw, _COMPONENTS)
    kind = pick(draw, [each for each in MISTAKES if (component, each) != ("pd", "toml")])
    return MISTAKES[kind].edits(component, at, round(at + between(draw, 5.0, 90.0), 2))


def _grow(draw: Randomness, at: float) -> Edits:
    return (Edit(at=at, spec={pick(draw, _WITH_DATA_VOLUME): {"requests": {"storage": "2Gi"}}}),)


def _pause(draw: Randomness, at: float) -> Edits:
    return Edit(at=at, spec={"paused": True}), Edit(at=_later(draw, at), spec={"paused": False})


def _suspend(draw: Randomness, at: float) -> Edits:
    component = pick(draw, ("", *_COMPONENTS))

    def suspending(suspended: bool) -> Json:
        action = {"suspendAction": {"suspendStatefulSet": suspended}}
        return {component: action} if component else action

    return Edit(at=at, spec=suspending(True)), Edit(at=_later(draw, at), spec=suspending(False))


def _label(draw: Randomness, at: float) -> Edits:
    """Labels or annotations: of TiDB's Service, of pods, or those that mean something."""
    team = {"team": pick(draw, ("a", "b"))}
    component = pick(draw, _COMPONENTS)
    return (
        pick(
            draw,
            (
                Edit(at=at, spec={"tidb": {"service": {"type": "ClusterIP", "labels": team}}}),
                Edit(at=at, spec={"tidb": {"service": {"type": "NodePort", "annotations": team}}}),
                Edit(at=at, spec={component: {"labels": team}}),
                Edit(at=at, spec={component: {"annotations": {labels.RESTARTED_AT: f"{at}"}}}),
                Edit(at=at, annotations={labels.min_ready_seconds(component): "10"}),
            ),
        ),
    )


def _command(draw: Randomness, at: float) -> Edits:
    """A command is put on a pod, and taken back later if it still stands there."""
    component, key, value = pick(draw, _COMMANDS)
    pod = f"pods/{random_pod(draw, component)}"
    return (
        Edit(at=at, target=pod, annotations={key: value}),
        Edit(at=_later(draw, at), target=pod, annotations={key: None}),
    )


def _delete(draw: Randomness, at: float) -> Edits:
    component = pick(draw, _COMPONENTS)
    which = (
        f"pods/{random_pod(draw)}",
        f"pods/{random_pod(draw)}",
        f"services/{NAME}-{component}",
        f"services/{NAME}-pd-peer",
    )
    return (Edit(at=at, delete=pick(draw, which)),)


def _later(draw: Randomness, at: float) -> float:
    return round(at + between(draw, 5.0, 120.0), 2)


_KINDS: tuple[Make, ...] = (
    _scale,
    _scale,
    _upgrade,
    _upgrade,
    _configure,
    _configure,
    _mistake,
    _mistake,
    _grow,
    _pause,
    _suspend,
    _label,
    _command,
    _delete,
)

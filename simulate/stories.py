"""What users do, at random: one edit, or several that belong together, such as a mistake and its correction."""

from collections.abc import Callable

from apis import pod_commands
from kube.objects import Json
from member import labels
from ports.randomness import Randomness
from simulate.draws import between, pick
from simulate.mistakes import MISTAKES
from simulate.plan import Edit
from simulate.state import PARTS
from simulate.worlds import NAME

Edits = tuple[Edit, ...]
Story = Callable[[Randomness, float], Edits]

_VERSIONS = ("v8.5.2", "v8.5.3", "v8.5.4")
_LEVELS = ("debug", "info", "warn", "error")
_FEWEST_AND_MOST = {"pd": (3, 5), "tikv": (3, 6), "tidb": (1, 4)}
_PODS = {"pd": 3, "tikv": 3, "tidb": 2}

_COMMANDS = (
    ("pd", pod_commands.PD_TRANSFER_LEADER, "none"),
    ("pd", pod_commands.PD_TRANSFER_LEADER, "delete-pod"),
    ("pd", pod_commands.REPLACE_VOLUME, "true"),
    ("tikv", pod_commands.EVICT_LEADER, "none"),
    ("tikv", pod_commands.EVICT_LEADER, "delete-pod"),
    ("tidb", pod_commands.TIDB_GRACEFUL_SHUTDOWN, "delete-pod"),
    ("tidb", pod_commands.REPLACE_VOLUME, "true"),
)
"""TiKV's `replace-volume` needs a store to spare: there is a workload of that."""


def story(draw: Randomness, at: float) -> Edits:
    """Something that a user begins at a time, and ends at most two minutes later."""
    return pick(draw, _STORIES)(draw, at)


def some_pod(draw: Randomness, part: str = "") -> str:
    """The name of a pod that every cluster with more than one of each has."""
    part = part or pick(draw, PARTS)
    return f"{NAME}-{part}-{draw.integer(0, _PODS[part] - 1)}"


def _scale(draw: Randomness, at: float) -> Edits:
    part = pick(draw, PARTS)
    return (Edit(at=at, spec={part: {"replicas": draw.integer(*_FEWEST_AND_MOST[part])}}),)


def _upgrade(draw: Randomness, at: float) -> Edits:
    part, version = pick(draw, ("", *PARTS)), {"version": pick(draw, _VERSIONS)}
    return (Edit(at=at, spec={part: version} if part else version),)


def _configure(draw: Randomness, at: float) -> Edits:
    level, how = pick(draw, _LEVELS), draw.integer(1, 3)
    change: Json = {"config": {"log": {"level": level}}}
    if how == 1:
        change["configUpdateStrategy"] = "InPlace"
    part = pick(draw, PARTS)
    if how == 2 and part != "pd":
        change["config"] = f'[log]\nlevel = "{level}"\n'
    return (Edit(at=at, spec={part: change}),)


def _blunder(draw: Randomness, at: float) -> Edits:
    """A mistake in a component; PD's configuration is left alone, since some clusters depend on what is in it."""
    part = pick(draw, PARTS)
    kind = pick(draw, [each for each in MISTAKES if (part, each) != ("pd", "toml")])
    return MISTAKES[kind].edits(part, at, round(at + between(draw, 5.0, 90.0), 2))


def _grow(draw: Randomness, at: float) -> Edits:
    return (Edit(at=at, spec={pick(draw, ("pd", "tikv")): {"requests": {"storage": "2Gi"}}}),)


def _pause(draw: Randomness, at: float) -> Edits:
    return Edit(at=at, spec={"paused": True}), Edit(at=_later(draw, at), spec={"paused": False})


def _suspend(draw: Randomness, at: float) -> Edits:
    part = pick(draw, ("", *PARTS))

    def told(suspended: bool) -> Json:
        action = {"suspendAction": {"suspendStatefulSet": suspended}}
        return {part: action} if part else action

    return Edit(at=at, spec=told(True)), Edit(at=_later(draw, at), spec=told(False))


def _label(draw: Randomness, at: float) -> Edits:
    """Labels or annotations: of TiDB's Service, of pods, or those that mean something."""
    team = {"team": pick(draw, ("a", "b"))}
    part = pick(draw, PARTS)
    return (
        pick(
            draw,
            (
                Edit(at=at, spec={"tidb": {"service": {"type": "ClusterIP", "labels": team}}}),
                Edit(at=at, spec={"tidb": {"service": {"type": "NodePort", "annotations": team}}}),
                Edit(at=at, spec={part: {"labels": team}}),
                Edit(at=at, spec={part: {"annotations": {labels.RESTARTED_AT: f"{at}"}}}),
                Edit(at=at, annotations={labels.min_ready_seconds(part): "10"}),
            ),
        ),
    )


def _command(draw: Randomness, at: float) -> Edits:
    """A pod is told what to do; what still stands of it later is taken back."""
    part, key, value = pick(draw, _COMMANDS)
    pod = f"pods/{some_pod(draw, part)}"
    return (
        Edit(at=at, target=pod, annotations={key: value}),
        Edit(at=_later(draw, at), target=pod, annotations={key: None}),
    )


def _delete(draw: Randomness, at: float) -> Edits:
    part = pick(draw, PARTS)
    which = (f"pods/{some_pod(draw)}", f"pods/{some_pod(draw)}", f"services/{NAME}-{part}", f"services/{NAME}-pd-peer")
    return (Edit(at=at, delete=pick(draw, which)),)


def _later(draw: Randomness, at: float) -> float:
    return round(at + between(draw, 5.0, 120.0), 2)


_STORIES: tuple[Story, ...] = (
    _scale,
    _scale,
    _upgrade,
    _upgrade,
    _configure,
    _configure,
    _blunder,
    _blunder,
    _grow,
    _pause,
    _suspend,
    _label,
    _command,
    _delete,
)

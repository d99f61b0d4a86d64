"""Random users' edits: one, or several that belong together, e.g. a mistake and its correction."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from apis import toml
from apis.components import DM_CLUSTER, component_type
from kube.objects import Json
from kube.resources import DM_CLUSTERS
from member import labels
from member.components import workload_names
from ports.randomness import Randomness
from simulate.engine.components import profile
from simulate.engine.other_kinds import DM
from simulate.engine.plan import Edit
from simulate.engine.worlds import CLUSTERS, NAME, NAMESPACE, replicas_of
from simulate.families.draws import between, pick
from simulate.families.homes import Home
from simulate.families.mistakes import MISTAKES

Edits = tuple[Edit, ...]

_LEVELS = ("debug", "info", "warn", "error")


@dataclass(frozen=True)
class Users:
    """The users of one cluster of `simulate.engine.worlds`, with their random draws.

    `name` differs from the plan's own cluster for its neighbour.
    """

    draw: Randomness
    cluster: str
    name: str = NAME

    def edits(self, at: float) -> Edits:
        """Edits that begin at a time in seconds, and end at most two minutes later."""
        return tuple(map(self._own, pick(self.draw, self.kinds)(self, at)))

    def leave(self, at: float) -> Edit:
        """Scale the cluster down to nothing."""
        return self._own(Edit(at=at, spec={component: {"replicas": 0} for component in self.components}))

    def _own(self, edit: Edit) -> Edit:
        """An edit of the users' own cluster."""
        if edit.target or edit.delete:
            return edit
        return self.of_cluster(edit)

    def of_cluster(self, edit: Edit) -> Edit:
        """An edit of the cluster as a whole."""
        return edit if self.name == NAME else replace(edit, neighbour=f"{NAMESPACE}/{self.name}")

    @property
    def is_of_dm(self) -> bool:
        """True for a DMCluster."""
        return False

    @property
    def coordinators(self) -> str:
        """The StatefulSet of PD, or of the masters."""
        return f"{NAME}-pd"

    @property
    def kinds(self) -> Sequence["Kind"]:
        """The kinds of edits; one that occurs more often is more likely."""
        return _KINDS

    @property
    def replicas(self) -> Mapping[str, int]:
        """The cluster's components with their initial replicas."""
        return replicas_of(self.cluster)

    @property
    def components(self) -> tuple[str, ...]:
        """The cluster's components."""
        return tuple(self.replicas)

    @property
    def commands(self) -> tuple[tuple[str, str, str], ...]:
        """Commands for pods: component, annotation and value."""
        return tuple((component, *command) for component in self.components for command in profile(component).commands)

    @property
    def have_little(self) -> bool:
        """True if the cluster has only PD, TiKV and TiDB, without TLS."""
        plain = "tlsCluster" not in CLUSTERS[self.cluster]()["spec"]
        return plain and self.components == tuple(replicas_of("small"))

    def component(self) -> str:
        """A random component of the cluster."""
        return pick(self.draw, self.components)

    def pod(self, component: str = "") -> str:
        """The name of an initial pod."""
        component = component or self.component()
        return f"{self.name}-{component}-{self.draw.integer(0, self.replicas[component] - 1)}"

    def change(self, at: float, component: str, change: Json) -> Edit:
        """A change of a component's section."""
        return Home(component, self.cluster).merge(at, change)


@dataclass(frozen=True)
class DMUsers(Users):
    """The users of the DMCluster that a plan creates beside its cluster."""

    name: str = DM

    def of_cluster(self, edit: Edit) -> Edit:
        """An edit of the DMCluster as a whole."""
        return replace(edit, target=self.home.target)

    @property
    def is_of_dm(self) -> bool:
        return True

    @property
    def coordinators(self) -> str:
        return f"{self.name}-dm-master"

    @property
    def home(self) -> Home:
        """The home of the component that every DMCluster has."""
        return Home("dm-master", self.cluster)

    @property
    def kinds(self) -> Sequence["Kind"]:
        """The kinds of edits; its pods take no commands."""
        return [each for each in _KINDS if each is not _command]

    @property
    def replicas(self) -> Mapping[str, int]:
        """The replicas of the DMCluster of all plans."""
        components = workload_names(DM_CLUSTERS.kind)
        return {component: Home(component, self.cluster).section["replicas"] for component in components}

    @property
    def have_little(self) -> bool:
        """True if it has no TLS."""
        return True


def _scale(users: Users, at: float) -> Edits:
    known = profile(users.component())
    return (users.change(at, known.name, {"replicas": users.draw.integer(known.fewest, known.most)}),)


def _upgrade(users: Users, at: float) -> Edits:
    component = pick(users.draw, ("", *users.components))
    version = {"version": pick(users.draw, profile(component).versions)}
    return (users.change(at, component, version) if component else Edit(at=at, spec=version),)


def _configure(users: Users, at: float) -> Edits:
    component, level, how = users.component(), pick(users.draw, _LEVELS), users.draw.integer(1, 3)
    config = profile(component).config(level)
    change: Json = {"config": config}
    if how == 1:
        change["configUpdateStrategy"] = "InPlace"
    # a component with several files has no text form
    if how == 2 and component != "pd" and "config" not in config:
        change["config"] = toml.dumps(config)
    return (users.change(at, component, change),)


def _mistake(users: Users, at: float) -> Edits:
    """A mistake in a component; PD's configuration is spared, because some clusters depend on it."""
    component = users.component()
    known = [
        each
        for each, mistake in MISTAKES.items()
        if (component, each) != ("pd", "toml") and (users.have_little or not mistake.whole)
    ]
    right_at = round(at + between(users.draw, 5.0, 90.0), 2)
    return MISTAKES[pick(users.draw, known)].edits(Home(component, users.cluster), at, right_at)


def _grow(users: Users, at: float) -> Edits:
    sizes = {each: larger(each) for each in users.components}
    component = pick(users.draw, [each for each, larger in sizes.items() if larger])
    return (users.change(at, component, sizes[component]),)


def _pause(users: Users, at: float) -> Edits:
    return Edit(at=at, spec={"paused": True}), Edit(at=_later(users, at), spec={"paused": False})


def _suspend(users: Users, at: float) -> Edits:
    component = pick(users.draw, ("", *users.components))

    def suspending(at: float, suspended: bool) -> Edit:
        action = {"suspendAction": {"suspendStatefulSet": suspended}}
        return users.change(at, component, action) if component else Edit(at=at, spec=action)

    return suspending(at, True), suspending(_later(users, at), False)


def _label(users: Users, at: float) -> Edits:
    """Edit labels or annotations: of TiDB's Service, of pods, or meaningful ones."""
    team = {"team": pick(users.draw, ("a", "b"))}
    component = users.component()
    of_service = (
        Edit(at=at, spec={"tidb": {"service": {"type": "ClusterIP", "labels": team}}}),
        Edit(at=at, spec={"tidb": {"service": {"type": "NodePort", "annotations": team}}}),
    )
    of_pods = (
        users.change(at, component, {"labels": team}),
        users.change(at, component, {"annotations": {labels.RESTARTED_AT: f"{at}"}}),
        Edit(at=at, annotations={labels.min_ready_seconds(component): "10"}),
    )
    return (pick(users.draw, (*of_service * ("tidb" in users.components), *of_pods)),)


def _command(users: Users, at: float) -> Edits:
    """Put a command on a pod, and remove it later if it is still set."""
    component, key, value = pick(users.draw, users.commands)
    pod = f"pods/{users.pod(component)}"
    return (
        Edit(at=at, target=pod, annotations={key: value}),
        Edit(at=_later(users, at), target=pod, annotations={key: None}),
    )


def _delete(users: Users, at: float) -> Edits:
    which = (
        f"pods/{users.pod()}",
        f"pods/{users.pod()}",
        f"services/{users.name}-{users.component()}",
        f"services/{users.name}-{users.component()}-peer",
    )
    return (Edit(at=at, delete=pick(users.draw, which)),)


def _later(users: Users, at: float) -> float:
    return round(at + between(users.draw, 5.0, 120.0), 2)


def larger(component: str) -> Json:
    """Larger volumes of a component; nothing if it has none."""
    if component_type(component).of == DM_CLUSTER:
        return {"storageSize": "2Gi"}
    larger = {"requests": {"storage": "2Gi"}}
    if component == "tiflash":
        return {"storageClaims": [{"resources": larger}]}
    return larger if component_type(component).data_volume else {}


Kind = Callable[[Users, float], Edits]
"""Users' edits, starting at a time in seconds."""

_KINDS: tuple[Kind, ...] = (
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

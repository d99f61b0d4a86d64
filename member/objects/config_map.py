"""The ConfigMap of a component: its object, and which name and text it gets (objects.md 6.5, design.md 3.5).

A change of the configuration makes a new name under RollingUpdate, and a new name rolls the pods. So the name and the
text in use stay unless the user changed something: the configuration, or an option that shows in the start script.
A start script that only this program's version changed waits for that. To tell the two apart a ConfigMap remembers,
in an annotation, which options its script was made from. One of v1.6 gets that annotation when it is taken over.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from apis import toml
from apis.cluster import Cluster
from kube.objects import Json
from member import labels
from member.naming import member_name

CONFIG_FILE = "config-file"
STARTUP_SCRIPT = "startup-script"

ROLLING_UPDATE = "RollingUpdate"

_GO_ESCAPES = str.maketrans({char: f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"})


@dataclass(frozen=True, slots=True)
class Content:
    """What a component's ConfigMap should hold: file texts by key, and the options that show in the start script.

    All texts but the start script are TOML.
    """

    data: Mapping[str, str]
    script_options: Mapping[str, object]

    @property
    def config_files(self) -> dict[str, str]:
        """The configuration: the texts that are TOML."""
        return {key: text for key, text in self.data.items() if key != STARTUP_SCRIPT}

    def says_the_same(self, other: "Content") -> bool:
        """Whether the configuration of both means the same, and both scripts are made from the same options."""
        if self.config_files.keys() != other.config_files.keys() or self.script_options != other.script_options:
            return False
        return all(same_toml(text, other.data[key]) for key, text in self.config_files.items())


@dataclass(frozen=True, slots=True)
class ConfigMapChoice:
    """The name and the text that the component uses, and why.

    `same_config`: the configuration in use is as wanted. `is_of_others`: they keep it, and it is not written.
    """

    name: str
    data: Mapping[str, str]
    script_options: str
    because: str
    same_config: bool = True
    is_of_others: bool = False


def config_map(tc: Cluster, component: str, choice: ConfigMapChoice) -> Json:
    """The ConfigMap as it should be; one without a start script says nothing of its options."""
    annotations = {labels.START_SCRIPT_OPTIONS: choice.script_options} if STARTUP_SCRIPT in choice.data else {}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": labels.object_meta(tc, choice.name, labels.base_labels(tc, component), annotations),
        "data": dict(choice.data),
    }


def in_use_config_map_name(tc: Cluster, component: str, stateful_set: Json | None) -> str:
    """The name of the ConfigMap that the component's pods use; empty when there is none yet.

    The first ConfigMap volume of the StatefulSet's template that bears the component's name; while the StatefulSet is
    being re-created, the name that the cluster's annotation remembers.
    """
    base = member_name(tc, component)
    if stateful_set is None:
        return tc.metadata.annotations.get(labels.config_map_before_delete(component), "")
    volumes = stateful_set["spec"]["template"]["spec"].get("volumes") or ()
    names = ((volume.get("configMap") or {}).get("name", "") for volume in volumes)
    return next((name for name in names if name == base or name.startswith(f"{base}-")), "")


def choose_config_map(
    base: str, wanted: Content, strategy: str, in_use_name: str = "", in_use: Json | None = None
) -> ConfigMapChoice:
    """The name and text to use, given what is in use: `in_use` is None when no ConfigMap of `in_use_name` exists.

    One that is gone is made again under its name: pods that restart look for that.
    `base` is `<tc>-<component>`, `strategy` the component's configUpdateStrategy.
    """
    options = noted_options(wanted.script_options)
    if in_use is None:
        fresh = f"{base}-{digest(wanted.data)}" if strategy == ROLLING_UPDATE else base
        return ConfigMapChoice(in_use_name or fresh, wanted.data, options, "no ConfigMap is in use yet")

    old = _as_named(in_use_name, in_use.get("data") or {}, wanted.data, strategy)
    same_config = all(same_toml(old.get(key), text) for key, text in wanted.config_files.items())
    other_options = _other_options(_recorded_options(in_use), wanted.script_options)
    if same_config and not other_options and (STARTUP_SCRIPT in old or STARTUP_SCRIPT not in wanted.data):
        because = "neither the configuration nor a start-script option changed"
        return ConfigMapChoice(in_use_name, old, options, because)

    data = {**wanted.data, **{key: old[key] for key in wanted.config_files}} if same_config else wanted.data
    because = (
        f"the start-script options {', '.join(other_options)} changed" if same_config else "the configuration changed"
    )
    return ConfigMapChoice(_name_for(base, data, old, in_use_name, strategy), data, options, because, same_config)


def config_map_of_others(name: str, in_use: Json) -> ConfigMapChoice:
    """A ConfigMap in use that somebody else keeps, while the spec has no configuration: as v1.6 mounts it."""
    because = "the spec has no configuration, and the ConfigMap in use is kept by others"
    return ConfigMapChoice(name, in_use.get("data") or {}, "", because, is_of_others=True)


def _as_named(name: str, there: Mapping[str, str], wanted: Mapping[str, str], strategy: str) -> Mapping[str, str]:
    """The texts that a ConfigMap was made with, if others have changed them since and its name still tells.

    Pods were started with those: putting them back restarts nobody. Texts that nobody can tell any more stay.
    """
    if strategy != ROLLING_UPDATE or is_as_written(name, there):
        return there
    own = {key: text for key, text in there.items() if key in wanted}
    candidates = (wanted, *({**wanted, key: text} for key, text in own.items()), own)
    return next((each for each in candidates if is_as_written(name, each)), there)


def _name_for(base: str, data: Mapping[str, str], old: Mapping[str, str], in_use_name: str, strategy: str) -> str:
    if strategy != ROLLING_UPDATE or data == old:
        return in_use_name
    name = f"{base}-{digest(data)}"
    return f"{name}-new" if name == in_use_name else name


def is_as_written(name: str, data: Mapping[str, str]) -> bool:
    """Whether a ConfigMap whose name ends in a digest still holds what it was made with."""
    return name.removesuffix("-new").rpartition("-")[2] == digest(data)


def digest(data: Mapping[str, str]) -> str:
    """The seven characters that v1.6 appends to a ConfigMap's name (objects.md 6.5).

    The hex of the hex of a SHA-256: about 13 bits, which is why `choose_config_map` knows collisions. Kept because
    names with it are what users of v1.6 know.
    """
    text = json.dumps(dict(sorted(data.items())), ensure_ascii=False, separators=(",", ":")).translate(_GO_ESCAPES)
    hexadecimal = hashlib.sha256(text.encode()).hexdigest()
    return hexadecimal.encode().hex()[:7]


def same_toml(old: str | None, new: str | None) -> bool:
    """Whether two texts say the same; one that can't be read says something else."""
    if old is None or new is None or old == new:
        return old == new
    try:
        return toml.same(toml.loads(old), toml.loads(new))
    except ValueError:
        return old == new


def with_options(in_use: Json, before: Callable[[], Content | None]) -> Json:
    """A ConfigMap that tells the options of its script if anything does.

    `before` makes what its pods were written for, None where nobody knows; it is asked only where it is needed.
    """
    if _recorded_options(in_use) is not None or (known := before()) is None:
        return in_use
    return labels.with_annotation(in_use, labels.START_SCRIPT_OPTIONS, noted_options(known.script_options))


def _recorded_options(in_use: Json) -> Mapping[str, object] | None:
    """The options a ConfigMap's script was made from; None when it comes from v1.6, or does not say readably."""
    text = (in_use["metadata"].get("annotations") or {}).get(labels.START_SCRIPT_OPTIONS)
    try:
        recorded = json.loads(text or "null")
    except ValueError:
        return None
    return recorded if isinstance(recorded, dict) else None


def _other_options(recorded: Mapping[str, object] | None, wanted: Mapping[str, object]) -> list[str]:
    """The names of the options that are not as recorded."""
    if recorded is None:
        return []
    now: Mapping[str, object] = json.loads(noted_options(wanted))
    return sorted(name for name in recorded.keys() | now.keys() if recorded.get(name) != now.get(name))


def noted_options(options: Mapping[str, object]) -> str:
    """The options of a start script as the annotation tells them: the same text for the same options."""
    return json.dumps(options, sort_keys=True, separators=(",", ":"))

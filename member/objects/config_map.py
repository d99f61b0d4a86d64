"""The ConfigMap of a component: the object, and the choice of its name and texts (objects.md 6.5, design.md 3.5).

Under RollingUpdate a changed configuration leads to a new name, and a new name rolls the pods. So the present name and
texts stay unless the user has changed the configuration, or an option that affects the start script. If only a new
operator version changes the script, the new script waits for such a change. To distinguish the cases, an annotation of
the ConfigMap records the options of its script. A ConfigMap of v1.6 gets this annotation when it is taken over.
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
    """The wanted content of a component's ConfigMap: texts by key, and the options that affect the start script.

    All texts except the start script are TOML.
    """

    data: Mapping[str, str]
    script_options: Mapping[str, object]

    @property
    def config_files(self) -> dict[str, str]:
        """The configuration, i.e. the TOML texts."""
        return {key: text for key, text in self.data.items() if key != STARTUP_SCRIPT}

    def says_the_same(self, other: "Content") -> bool:
        """True if both configurations have the same meaning, and both scripts have the same options."""
        if self.config_files.keys() != other.config_files.keys() or self.script_options != other.script_options:
            return False
        return all(same_toml(text, other.data[key]) for key, text in self.config_files.items())


@dataclass(frozen=True, slots=True)
class ConfigMapChoice:
    """The name and the texts that the component uses, and why.

    `same_config` is True if the present configuration is the wanted one. `is_of_others` is True if another controller
    maintains the ConfigMap: then the operator does not write it.
    """

    name: str
    data: Mapping[str, str]
    script_options: str
    because: str
    same_config: bool = True
    is_of_others: bool = False


def config_map(tc: Cluster, component: str, choice: ConfigMapChoice) -> Json:
    """The desired ConfigMap; the options are recorded only if it has a start script."""
    annotations = {labels.START_SCRIPT_OPTIONS: choice.script_options} if STARTUP_SCRIPT in choice.data else {}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": labels.object_meta(tc, choice.name, labels.base_labels(tc, component), annotations),
        "data": dict(choice.data),
    }


def in_use_config_map_name(tc: Cluster, component: str, stateful_set: Json | None) -> str:
    """The name of the ConfigMap that the component's pods use; empty if there is none yet.

    It is the first ConfigMap volume in the StatefulSet's template with the component's name. While the StatefulSet is
    being recreated, the cluster's annotation has the name.
    """
    base = member_name(tc, component)
    if stateful_set is None:
        return tc.metadata.annotations.get(labels.config_map_before_delete(component), "")
    volumes = stateful_set["spec"]["template"]["spec"].get("volumes") or ()
    names = [(volume.get("configMap") or {}).get("name", "") for volume in volumes]
    return next((name for name in names if name == base or name.startswith(f"{base}-")), "")


def choose_config_map(
    base: str, wanted: Content, strategy: str, in_use_name: str = "", in_use: Json | None = None
) -> ConfigMapChoice:
    """The name and texts to use. `in_use` is the present ConfigMap, None if no ConfigMap `in_use_name` exists.

    A missing ConfigMap is recreated under its name, because restarting pods need it. `base` is `<tc>-<component>`,
    `strategy` the component's configUpdateStrategy.
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
    """A ConfigMap of another controller, used while the spec has no configuration, as in v1.6."""
    because = "the spec has no configuration, and another controller keeps the ConfigMap in use"
    return ConfigMapChoice(name, in_use.get("data") or {}, "", because, is_of_others=True)


def _as_named(name: str, there: Mapping[str, str], wanted: Mapping[str, str], strategy: str) -> Mapping[str, str]:
    """The original texts of a ConfigMap that another client has changed, if the digest in its name identifies them.

    The pods started with these texts, so restoring them restarts no pod. Texts that cannot be identified stay.
    """
    if strategy != ROLLING_UPDATE or is_as_written(name, there):
        return there
    own = {key: text for key, text in there.items() if key in wanted}
    candidates = (wanted, *({**wanted, key: text} for key, text in own.items()), own)
    return next((candidate for candidate in candidates if is_as_written(name, candidate)), there)


def _name_for(base: str, data: Mapping[str, str], old: Mapping[str, str], in_use_name: str, strategy: str) -> str:
    if strategy != ROLLING_UPDATE or data == old:
        return in_use_name
    name = f"{base}-{digest(data)}"
    return f"{name}-new" if name == in_use_name else name


def is_as_written(name: str, data: Mapping[str, str]) -> bool:
    """True if a ConfigMap whose name ends in a digest still has its original content."""
    return name.removesuffix("-new").rpartition("-")[2] == digest(data)


def digest(data: Mapping[str, str]) -> str:
    """The seven characters that v1.6 appends to a ConfigMap's name (objects.md 6.5).

    They are the hex of the hex of a SHA-256, i.e. about 13 bits, so `choose_config_map` handles collisions. Users of
    v1.6 know such names.
    """
    text = json.dumps(dict(sorted(data.items())), ensure_ascii=False, separators=(",", ":")).translate(_GO_ESCAPES)
    hexadecimal = hashlib.sha256(text.encode()).hexdigest()
    return hexadecimal.encode().hex()[:7]


def same_toml(old: str | None, new: str | None) -> bool:
    """True if two TOML texts have the same meaning, or are equal if one of them is invalid."""
    if old is None or new is None or old == new:
        return old == new
    try:
        return toml.same(toml.loads(old), toml.loads(new))
    except ValueError:
        return old == new


def with_options(in_use: Json, before: Callable[[], Content | None]) -> Json:
    """A ConfigMap with the annotation that records its script's options, if they can be found out.

    `before` returns the content for which the pods were created, None if unknown. It is called only if necessary.
    """
    if _recorded_options(in_use) is not None or (known := before()) is None:
        return in_use
    return labels.with_annotation(in_use, labels.START_SCRIPT_OPTIONS, noted_options(known.script_options))


def _recorded_options(in_use: Json) -> Mapping[str, object] | None:
    """The recorded options of a ConfigMap's script; None if v1.6 wrote it or if the record is invalid."""
    text = (in_use["metadata"].get("annotations") or {}).get(labels.START_SCRIPT_OPTIONS)
    try:
        recorded = json.loads(text or "null")
    except ValueError:
        return None
    return recorded if isinstance(recorded, dict) else None


def _other_options(recorded: Mapping[str, object] | None, wanted: Mapping[str, object]) -> list[str]:
    """The names of the options that differ from the record."""
    if recorded is None:
        return []
    now: Mapping[str, object] = json.loads(noted_options(wanted))
    return sorted(name for name in recorded.keys() | now.keys() if recorded.get(name) != now.get(name))


def noted_options(options: Mapping[str, object]) -> str:
    """The options of a start script in the annotation's format: equal options give equal texts."""
    return json.dumps(options, sort_keys=True, separators=(",", ":"))

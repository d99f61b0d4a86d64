"""The claim templates of a StatefulSet, which nobody can change: how far they are from what is wanted (objects.md 5).

Larger volumes are `member.volume_changes`' work. Other volumes are not: a pod of the new kind could not be made.
"""

from apis.quantity import parse
from kube.objects import Json
from member.apply.last_applied import read_record


def names(stateful_set: Json) -> list[str]:
    """The names of the claim templates, in their order."""
    return [template["metadata"]["name"] for template in _templates(stateful_set)]


def sizes_differ(live: Json, desired: Json) -> bool:
    """Whether some volume has another size or class in the two; volumes of one alone do not count."""
    there, wanted = _by_name(live), _by_name(desired)
    return any(not _same(there[name], template) for name, template in wanted.items() if name in there)


def with_sizes_of(live: Json, desired: Json) -> Json:
    """`desired` with the sizes and classes that volumes of the same name have in `live`."""
    if "volumeClaimTemplates" not in desired["spec"]:
        return desired
    there = _by_name(live)
    templates = [
        _sized_as(there.get(each["metadata"]["name"]), each) for each in desired["spec"]["volumeClaimTemplates"]
    ]
    return desired | {"spec": desired["spec"] | {"volumeClaimTemplates": templates}}


def unwanted_mounts(live: Json, desired: Json) -> list[str]:
    """Volumes of `live` that its pods mount and that `desired` does not have any more."""
    record = read_record(live)
    pod = (record.spec if record else live["spec"])["template"]["spec"]
    mounted = {mount["name"] for container in pod["containers"] for mount in container.get("volumeMounts") or ()}
    return [name for name in names(live) if name in mounted and name not in names(desired)]


def _templates(stateful_set: Json) -> list[Json]:
    return stateful_set["spec"].get("volumeClaimTemplates") or []


def _by_name(stateful_set: Json) -> dict[str, Json]:
    return {template["metadata"]["name"]: template["spec"] for template in _templates(stateful_set)}


def _same(one: Json, other: Json) -> bool:
    return parse(_size(one)) == parse(_size(other)) and one.get("storageClassName") == other.get("storageClassName")


def _size(claim: Json) -> str:
    return str((claim["resources"].get("requests") or {}).get("storage", "0"))


def _sized_as(there: Json | None, template: Json) -> Json:
    if there is None:
        return template
    spec = {key: value for key, value in template["spec"].items() if key not in ("resources", "storageClassName")}
    kept = {key: there[key] for key in ("resources", "storageClassName") if key in there}
    return template | {"spec": spec | kept}

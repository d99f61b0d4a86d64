"""The writes that TiDB Operator v1.6 would make if it returned, by its own comparisons (objects.md 2.3, 6.5, 11.3 to
11.5).

It compares its desired objects with its record in `pingcap.com/last-applied-configuration`, hardly ever with the live
objects.
"""

import json
from collections.abc import Iterator

from kube.objects import Json
from kube.semantic import semantically_equal
from member.labels import LAST_APPLIED

_EXACT = ("pd", "tso", "scheduling", "tikv", "tiflash", "tiproxy", "tidb")
"""Components of whose Services it compares labels and annotations as well (2.3)."""


def would_change(before: Json, now: Json) -> list[str]:
    """The changes that v1.6, which left `before`, would write to the object as it is now: `field` of its spec, metadata
    or data.

    `restarts` is among them if that would restart pods.
    """
    match before["kind"]:
        case "StatefulSet":
            return list(_of_stateful_set(_record(before), _record(now), now))
        case "Service":
            return list(_of_service(before, now))
        case "ConfigMap":
            return [] if before.get("data") == now.get("data") else ["data"]
        case _:
            return []


def _of_stateful_set(wanted: Json, noted: Json, now: Json) -> Iterator[str]:
    """11.4, 11.5. Its own bookkeeping is left out, for which it writes in each round anyway."""
    for field in ("replicas", "updateStrategy", "template"):
        if not semantically_equal({field: wanted.get(field)}, {field: noted.get(field)}):
            yield field
    pod = "spec"
    if not semantically_equal(wanted["template"][pod], noted["template"][pod]):
        yield "restarts"
    if not any(owner.get("controller") for owner in now["metadata"].get("ownerReferences") or ()):
        yield "ownerReferences"


def _of_service(before: Json, now: Json) -> Iterator[str]:
    """2.3; a node port that it finds is as good as noted."""
    if not semantically_equal(_ports_open(_record(before)), _ports_open(_record(now))):
        yield "spec"
    labels = now["metadata"].get("labels") or {}
    if labels.get("app.kubernetes.io/component") not in _EXACT:
        return
    if labels != (before["metadata"].get("labels") or {}):
        yield "labels"
    there, wanted = ({k: v for k, v in _annotations(each).items() if k != LAST_APPLIED} for each in (now, before))
    if there != wanted:
        yield "annotations"


def _ports_open(spec: Json) -> Json:
    ports = [{key: value for key, value in port.items() if key != "nodePort"} for port in spec.get("ports") or ()]
    return {key: value for key, value in spec.items() if key not in ("healthCheckNodePort", "metadata")} | {
        "ports": ports
    }


def _record(item: Json) -> Json:
    found: Json = json.loads(_annotations(item)[LAST_APPLIED])
    # what v1.0 noted in pod templates
    template = found.get("template") or {"metadata": {}}
    (template["metadata"].get("annotations") or {}).pop(LAST_APPLIED, None)
    return found


def _annotations(item: Json) -> dict[str, str]:
    return item["metadata"].get("annotations") or {}

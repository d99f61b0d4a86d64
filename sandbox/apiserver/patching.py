"""Applying patches to trees: JSON merge patch (RFC 7396), JSON patch (RFC 6902), strategic merge patch."""

from typing import Any

import jsonpatch
import jsonpointer

from kube.objects import Json
from sandbox.apiserver import schemas
from sandbox.apiserver.refusals import Refusal, bad_request

MERGE = "application/merge-patch+json"
JSON = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"

_STRATEGY = "x-kubernetes-patch-strategy"
_MERGE_KEY = "x-kubernetes-patch-merge-key"


def json_patch(tree: Json, operations: Any) -> Json:
    """The tree after the operations. Raises Refusal: 400 for a malformed patch, 422 for an inapplicable one."""
    if not isinstance(operations, list):
        raise bad_request(
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"
        )
    try:
        patched = jsonpatch.JsonPatch(operations).apply(tree)
    except jsonpatch.InvalidJsonPatch as error:
        raise bad_request(f"error decoding patch: {error}") from error
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException) as error:
        message = "the server rejected our request due to an error in our request"
        raise Refusal(422, "Invalid", message, {}) from error
    if not isinstance(patched, dict):
        raise bad_request("the patched document is not an object")
    return patched


def merge_patch(target: Any, patch: Any) -> Any:
    """The target after a merge patch: objects are merged, null deletes, everything else replaces."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value) if isinstance(value, dict) else value
    return merged


def strategic_merge(target: Json, patch: Json, schema: Json) -> Json:
    """The target after a strategic merge patch: lists with a merge key are merged by it, as the schema says.

    Raises Refusal (400) for a directive or an item without its merge key.
    """
    return dict(_merged(target, patch, schema))


def _merged(target: Any, patch: Any, schema: Json) -> Any:
    if not isinstance(patch, dict):
        return patch
    directive = patch.get("$patch")
    if directive == "replace":
        return {name: value for name, value in patch.items() if name != "$patch"}
    if directive == "delete":
        return {}
    merged = dict(target) if isinstance(target, dict) else {}
    node = schemas.resolve(schema)
    for name, value in patch.items():
        if not name.startswith("$"):
            _merge_field(merged, name, value, schemas.property_of(node, name) or {})
    for name, value in patch.items():
        if name.startswith("$") and name != "$patch" and not isinstance(value, list):
            raise bad_request(f"error decoding patch: {name} must be a list")
        if name.startswith("$deleteFromPrimitiveList/"):
            field = name.partition("/")[2]
            merged[field] = [item for item in merged.get(field) or () if item not in value]
        elif name.startswith("$setElementOrder/"):
            _reorder(merged, name.partition("/")[2], value, node)
        elif name == "$retainKeys":
            merged = {key: kept for key, kept in merged.items() if key in value}
    return merged


def _merge_field(merged: Json, name: str, value: Any, schema: Json) -> None:
    if value is None:
        merged.pop(name, None)
        return
    strategies = str(schema.get(_STRATEGY, "")).split(",")
    current = merged.get(name)
    if isinstance(value, list) and "merge" in strategies:
        merged[name] = _merged_list(current or [], value, schema)
    elif isinstance(value, dict) and "replace" not in strategies:
        merged[name] = _merged(current, value, schema)
    else:
        merged[name] = value


def _merged_list(current: list[Any], patch: list[Any], schema: Json) -> list[Any]:
    key = schema.get(_MERGE_KEY)
    if not key:
        return current + [item for item in patch if item not in current]
    if any(item == {"$patch": "replace"} for item in patch):
        return [item for item in patch if item != {"$patch": "replace"}]
    merged = list(current)
    for item in patch:
        if not isinstance(item, dict) or key not in item:
            raise bad_request(f"map: {item} does not contain declared merge key: {key}")
        place = next((index for index, old in enumerate(merged) if old.get(key) == item[key]), None)
        if item.get("$patch") == "delete":
            merged = [old for old in merged if old.get(key) != item[key]]
        elif place is None:
            merged.append(_merged({}, item, schema.get("items") or {}))
        else:
            merged[place] = _merged(merged[place], item, schema.get("items") or {})
    return merged


def _reorder(merged: Json, field: str, order: list[Any], node: Json) -> None:
    """Bring the listed items into the given order; each run of other items stays behind its predecessor."""
    items = merged.get(field)
    if not isinstance(items, list):
        return
    key = (schemas.property_of(node, field) or {}).get(_MERGE_KEY)
    wanted = [_identity(item, key) for item in order]
    position = {identity: index for index, identity in reversed(list(enumerate(wanted)))}
    ranks, last = [], -1
    for item in items:
        last = position.get(_identity(item, key), last)
        ranks.append(last)
    merged[field] = [item for _, item in sorted(zip(ranks, items, strict=True), key=lambda pair: pair[0])]


def _identity(item: Any, key: str | None) -> str | int | float:
    """The merge key's value of a list item. Raises Refusal (400)."""
    found = item.get(key) if key and isinstance(item, dict) else item
    if not isinstance(found, str | int | float):
        raise bad_request(f"error decoding patch: {item} does not contain declared merge key: {key}")
    return found

"""Status conditions by type; the transition time changes only with the status."""

from collections.abc import Iterable

from kube.objects import Json


def condition(conditions: Iterable[Json] | None, kind: str) -> Json | None:
    """The condition of a type, or None."""
    for entry in conditions or ():
        if entry["type"] == kind:
            return entry
    return None


def holds(tree: Json, kind: str) -> bool:
    """True if the object's condition of this type is True."""
    found = condition(tree.get("status", {}).get("conditions"), kind)
    return found is not None and found["status"] == "True"


def with_condition(
    conditions: Iterable[Json] | None,
    kind: str,
    status: bool | None,
    now: str,
    *,
    reason: str = "",
    message: str = "",
) -> list[Json]:
    """The conditions with one of them replaced; a status of None means Unknown."""
    entries = list(conditions or ())
    before = condition(entries, kind)
    text = "Unknown" if status is None else str(status)
    if before is not None and (before["status"], before.get("reason", ""), before.get("message", "")) == (
        text,
        reason,
        message,
    ):
        return entries
    since = before.get("lastTransitionTime", now) if before is not None and before["status"] == text else now
    entry: Json = {"type": kind, "status": text, "lastTransitionTime": since}
    if reason:
        entry["reason"] = reason
    if message:
        entry["message"] = message
    if before is None:
        return [*entries, entry]
    return [entry if each is before else each for each in entries]

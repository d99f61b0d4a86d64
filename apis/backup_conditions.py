"""Conditions in the status of a Backup or Restore (backup.md 3.2, 4.1). Pure, on JSON trees.

Trees, not models, so that fields of other versions survive. The operator and the pods of Jobs both write conditions.
"""

from datetime import datetime

from apis.shared import Json
from apis.times import stamp
from ports.foreign_text import printable

VERIFIED = "Verified"
"""The condition of a Complete Backup whose files in `backupmeta` exist. v1.6 has no such condition."""
FILES_DIFFER = "FilesDiffer"
"""The reason if files are missing or different; other reasons mean that they could not be checked."""

LOG_STATE_UNREADABLE = "LogStateUnreadable"
"""The condition of a log backup whose task could not be read since its transition time. v1.6 has no such condition."""


def with_condition(
    tree: Json,
    kind: str,
    now: datetime,
    reason: str = "",
    message: str = "",
    *,
    is_true: bool = True,
    keeps_phase: bool = False,
    command: str = "",
) -> Json:
    """A tree of `phase` and `conditions` after a condition is written; its type becomes the phase.

    The transition time changes only with the phase or the condition's status. `command` is the sub-command of a log
    backup that the condition is about. The message is made printable, since it contains text from tools and servers.
    """
    conditions: list[Json] = list(tree.get("conditions") or ())
    before: Json = next((condition for condition in conditions if condition.get("type") == kind), {})
    value = str(is_true)
    texts = {"command": command, "reason": reason, "message": printable(message, lines=True)}
    made: Json = {"type": kind, "status": value, **{key: text for key, text in texts.items() if text}}
    is_same_phase = keeps_phase or tree.get("phase") == kind
    since = before.get("lastTransitionTime") if is_same_phase and before.get("status") == value else None
    made["lastTransitionTime"] = since or stamp(now)
    others = [made if condition is before else condition for condition in conditions] if before else [*conditions, made]
    return tree | {"conditions": others} | ({} if keeps_phase else {"phase": kind})

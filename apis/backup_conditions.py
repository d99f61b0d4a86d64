"""How a condition gets into the status of a Backup or Restore (backup.md 3.2, 4.1). Pure, on JSON trees.

Trees, not models: what other versions wrote into a status stays in it. The operator and the pods of Jobs write both.
"""

from datetime import datetime

from apis.shared import Json
from apis.times import stamp

VERIFIED = "Verified"
"""Of a Backup that is Complete: whether what `backupmeta` names is there. v1.6 knows no such condition."""
FILES_DIFFER = "FilesDiffer"
"""The reason of one that was looked at and found wanting; other reasons are those of looks that were not possible."""


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
    """A tree of `phase` and `conditions` once a condition is written, whose type becomes the phase.

    The time of transition stays unless the phase or the condition's status was another. `command` is the sub-command of
    a log backup that the condition tells of.
    """
    conditions: list[Json] = list(tree.get("conditions") or ())
    before: Json = next((each for each in conditions if each.get("type") == kind), {})
    value = str(is_true)
    said = {"command": command, "reason": reason, "message": message}
    made: Json = {"type": kind, "status": value, **{key: text for key, text in said.items() if text}}
    is_same_phase = keeps_phase or tree.get("phase") == kind
    since = before.get("lastTransitionTime") if is_same_phase and before.get("status") == value else None
    made["lastTransitionTime"] = since or stamp(now)
    others = [made if each is before else each for each in conditions] if before else [*conditions, made]
    return tree | {"conditions": others} | ({} if keeps_phase else {"phase": kind})

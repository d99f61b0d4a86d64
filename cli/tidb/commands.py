"""The table of commands: whoever adds one adds a line here."""

from collections.abc import Mapping

from cli.doctor.command import DOCTOR
from cli.tidb import pausing, planned
from cli.tidb.command import Command
from cli.tidb.status.command import STATUS

COMMANDS: Mapping[str, Command] = {
    each.name: each
    for each in (
        STATUS,
        planned.DIFF,
        pausing.PAUSE,
        pausing.RESUME,
        DOCTOR,
    )
}

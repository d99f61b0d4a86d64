"""The table of commands: whoever adds one adds a line here."""

from collections.abc import Mapping

from cli.doctor.command import DOCTOR
from cli.tidb import pausing, planned
from cli.tidb.command import Command

COMMANDS: Mapping[str, Command] = {
    each.name: each
    for each in (
        planned.DIFF,
        pausing.PAUSE,
        pausing.RESUME,
        DOCTOR,
    )
}

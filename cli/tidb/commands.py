"""The table of commands: whoever adds one adds a line here."""

from collections.abc import Mapping

from cli.doctor.command import DOCTOR
from cli.tidb import logs, pausing, planned
from cli.tidb.certificates import CERTS
from cli.tidb.command import Command
from cli.tidb.completion import COMPLETION
from cli.tidb.drain.command import DRAIN
from cli.tidb.restart import RESTART
from cli.tidb.status.command import STATUS

COMMANDS: Mapping[str, Command] = {
    each.name: each
    for each in (
        STATUS,
        DOCTOR,
        planned.DIFF,
        RESTART,
        DRAIN,
        logs.LOGS,
        pausing.PAUSE,
        pausing.RESUME,
        CERTS,
        COMPLETION,
    )
}

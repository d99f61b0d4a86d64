"""The scripts that start the servers in their pods (objects.md 7).

The texts are new, with the effects of v1.6's scripts: POSIX sh that runs in dash, bash and busybox, without unintended
word splitting. A PD without data never starts without an answer of Discovery. A script is a list of fragments
(`fragments/*.sh`) with variables, and of settings for these variables, so scripts of one kind differ only in what the
spec changes.
"""

from member.startscript.servers import (
    pd_script,
    pdms_script,
    pump_script,
    tidb_script,
    tiflash_init_script,
    tiflash_script,
    tikv_script,
)

__all__ = [
    "pd_script",
    "pdms_script",
    "pump_script",
    "tidb_script",
    "tiflash_init_script",
    "tiflash_script",
    "tikv_script",
]

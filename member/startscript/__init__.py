"""The scripts that start the servers in their pods (objects.md 7).

Our own text, with the effects of v1.6's: POSIX sh, so that it runs under dash, bash and busybox; no word is split that
was not meant to be; and a PD without data is never started without an answer of Discovery. A script is a list of
fragments (`fragments/*.sh`) that use variables, and of the settings that give them values, so the scripts of one kind
differ only in what the spec makes different.
"""

from member.startscript.pd import pd_script
from member.startscript.pdms import pdms_script
from member.startscript.pump import pump_script
from member.startscript.tidb import tidb_script
from member.startscript.tiflash import tiflash_init_script, tiflash_script
from member.startscript.tikv import tikv_script

__all__ = [
    "pd_script",
    "pdms_script",
    "pump_script",
    "tidb_script",
    "tiflash_init_script",
    "tiflash_script",
    "tikv_script",
]

"""`python -m tests.silence` prints the table for docs/rules/silence.md."""

import sys

from tests.silence.document import rendered

sys.stdout.write(rendered() + "\n")

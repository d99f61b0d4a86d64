"""`python -m tests.silence` prints the tables for docs/rules/silence.md."""

import sys

from tests.silence.document import rendered

sys.stdout.write(rendered() + "\n")

"""`python -m simulate`."""

import sys

from ports.starting import start

sys.exit(start("simulate.main"))

"""`python -m simulate`."""

import sys

from simulate.main import main

sys.exit(main())

"""`python -m controller_manager`."""

import sys

from controller_manager.main import main

sys.exit(main())

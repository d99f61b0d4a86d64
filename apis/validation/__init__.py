"""Problems of specs, reported before anything is written (defaults-and-validation.md 3, 4; lifecycle.md 2.2).

`validate` judges a spec by itself, `immutability` by what runs. Both collect every problem instead of stopping at the
first one. v1.6 checks the second kind only in a webhook that is off by default; here every reconcile does.
"""

from apis.problem import Problem
from apis.validation.changes import Running, immutability, observe
from apis.validation.cluster import validate

__all__ = ["Problem", "Running", "immutability", "observe", "validate"]

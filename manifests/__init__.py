"""Files that are installed with the code: the CRD, samples, RBAC and Deployment of the operator, monitoring."""

from pathlib import Path

DIRECTORY = Path(__file__).resolve().parent
"""The directory of `crds`, `samples`, `operator` and `monitoring`."""

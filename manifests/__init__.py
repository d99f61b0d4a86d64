"""What is installed beside the code: the CRD, samples, RBAC and Deployment of the operator, monitoring."""

from pathlib import Path

DIRECTORY = Path(__file__).resolve().parent
"""Has `crds`, `samples`, `operator` and `monitoring`."""

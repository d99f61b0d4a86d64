"""Files that are installed with the code: the CRD, samples, RBAC and Deployment of the operator, monitoring."""

from pathlib import Path

DIRECTORY = Path(__file__).resolve().parent
"""The directory of `crds`, `advanced-statefulset`, `samples`, `operator` and `monitoring`."""
ADVANCED_STATEFUL_SET = DIRECTORY / "advanced-statefulset" / "apps.pingcap.com_statefulsets.yaml"
"""The definition of Advanced StatefulSets."""

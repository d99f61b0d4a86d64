"""A Kubernetes API server in Python, realistic enough for kubectl, client-go and the operator.

A request passes `server` (faults, audit) → `routes` → `api` (verbs) → `reads`, `writes`, `deletion` → `storage`.
"""

from sandbox.apiserver.faults import Fault, Faults
from sandbox.apiserver.refusals import Refusal
from sandbox.apiserver.server import ApiServer
from sandbox.apiserver.transport import InProcessTransport

__all__ = ["ApiServer", "Fault", "Faults", "InProcessTransport", "Refusal"]

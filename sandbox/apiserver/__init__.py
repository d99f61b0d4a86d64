"""A Kubernetes API server in Python: real enough for kubectl, client-go and this operator.

A request goes `server` (faults, audit) → `routes` → `api` (verbs) → `reads`, `writes`, `deletion` → `storage`.
"""

from sandbox.apiserver.faults import Fault, Faults
from sandbox.apiserver.refusals import Refusal
from sandbox.apiserver.server import ApiServer
from sandbox.apiserver.transport import InProcessTransport

__all__ = ["ApiServer", "Fault", "Faults", "InProcessTransport", "Refusal"]

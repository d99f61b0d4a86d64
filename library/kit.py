"""A controller in one value: everything that a program needs to reconcile a custom resource.

The other modules have the parts, for programs that combine them differently.
"""

from apis.model import Model
from apis.problem import Problem
from controller_manager.manager import ControllerManager
from controller_manager.process import run_controllers
from controller_manager.process_options import ProcessOptions
from controllers.conditions import ConditionValue
from controllers.controller import Controller, Result
from controllers.errors import IgnoreError, RequeueError
from controllers.kind import Kind
from controllers.owned_deletion import delete_if, prune
from controllers.references import References
from controllers.runtime import Runtime
from controllers.simple_kind import OwnedObjects, Reconcile, SimpleKind
from controllers.stages import Stage
from controllers.status_pacing import StatusFields
from kube.events import NORMAL, WARNING
from kube.objects import Json, Object
from kube.resources import Resource
from member.outcome import Done, Failed, Outcome, Refused, Waiting
from ports.transport import RemoteError

__all__ = [
    "NORMAL",
    "WARNING",
    "ConditionValue",
    "Controller",
    "ControllerManager",
    "Done",
    "Failed",
    "IgnoreError",
    "Json",
    "Kind",
    "Model",
    "Object",
    "Outcome",
    "OwnedObjects",
    "Problem",
    "ProcessOptions",
    "Reconcile",
    "References",
    "Refused",
    "RemoteError",
    "RequeueError",
    "Resource",
    "Result",
    "Runtime",
    "SimpleKind",
    "Stage",
    "StatusFields",
    "Waiting",
    "delete_if",
    "prune",
    "run_controllers",
]

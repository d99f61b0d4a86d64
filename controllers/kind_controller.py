"""The assembly of a kind's controller: informer, handler, queue and reconciler (CW-1)."""

from controllers.controller import Controller
from controllers.informing import Informers
from controllers.kind import C, D, Kind, M, R
from controllers.metrics import NO_OBJECT_METRICS, ObjectMetrics
from controllers.reconciler import Reconciler
from controllers.runtime import Runtime


def kind_controller(
    runtime: Runtime,
    kind: Kind[M, C, D, R],
    objects: Informers,
    deps: D,
    metrics: ObjectMetrics = NO_OBJECT_METRICS,
) -> Controller:
    """The controller of the objects of a kind, which `objects` watches; it is not started.

    Every event of an object enqueues it, including resyncs, which cover everything that depends on time. The caller
    registers handlers of other resources with `Controller.enqueue`.
    """
    lister = objects.lister_for(kind.resource)
    reconciler = Reconciler(kind, lister, deps, runtime, metrics)
    controller = runtime.controller(kind.name, reconciler, is_slow=reconciler.is_slow)
    runtime.enqueue_objects(objects, kind.resource, controller.enqueue, reconciler.is_echo)
    return controller

"""Every Greeter gets a ConfigMap with its greeting, and its status says so."""

from msgspec import field

from apis.shared import Model
from controller_manager.process import run_controllers
from controllers.simple_kind import Reconcile, SimpleKind
from controllers.stages import Stage
from kube.resources import CONFIG_MAPS, Resource
from member.outcome import Done, Outcome

GREETERS = Resource("samples.example.com", "v1", "greeters", "Greeter")


class GreeterSpec(Model, kw_only=True):
    whom: str
    greeting: str = "Hello"


class GreeterStatus(Model, kw_only=True):
    text: str = ""


class Greeter(Model, kw_only=True):
    spec: GreeterSpec
    status: GreeterStatus = field(default_factory=GreeterStatus)


def greet(ctx: Reconcile[Greeter]) -> Outcome:
    """One step towards what the spec asks for: what differs is written, and nothing where nothing does."""
    text = f"{ctx.model.spec.greeting}, {ctx.model.spec.whom}!"
    ctx.apply(CONFIG_MAPS, {"metadata": {"name": ctx.owner.metadata.name}, "data": {"text": text}})
    ctx.model.status.text = text
    return Done()


GREETER = SimpleKind(resource=GREETERS, model=Greeter, stages=[Stage("greet", greet)], owns=[CONFIG_MAPS])

if __name__ == "__main__":
    raise SystemExit(run_controllers("sample-controller", GREETER.controllers))

"""Every Greeter gets a ConfigMap with its greeting, and its status says so."""

from msgspec import field

from kube.resources import CONFIG_MAPS
from library.kit import Done, Model, Outcome, Reconcile, Resource, SimpleKind, Stage, run_controllers

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
    """Write the greeting; `apply` sends a request only if something differs."""
    text = f"{ctx.model.spec.greeting}, {ctx.model.spec.whom}!"
    ctx.apply(CONFIG_MAPS, {"metadata": {"name": ctx.owner.metadata.name}, "data": {"text": text}})
    ctx.model.status.text = text
    return Done()


GREETER = SimpleKind(resource=GREETERS, model=Greeter, stages=[Stage("greet", greet)], owns=[CONFIG_MAPS])

if __name__ == "__main__":
    raise SystemExit(run_controllers("sample-controller", GREETER.controllers))

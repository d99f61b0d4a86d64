"""`tidb-operator sandbox`: a Kubernetes and TiDB world on loopback, for an operator in another terminal."""

from pathlib import Path

from cli import hints
from cli.failures import Failure
from cli.world import new_world
from controller_manager.shutdown import stopping_on_signals
from ports.clock import SystemClock
from ports.randomness import SystemRandomness
from ports.stopping import Stop


def serve(directory: Path) -> int:
    """Run a sandbox until a signal ends it, and its content with it. Raises Failure."""
    clock = SystemClock()
    world = new_world(clock, SystemRandomness())
    with stopping_on_signals(stop := Stop()):
        world.start()
        try:
            try:
                world.write_kubeconfig(directory, hints.programs())
            except OSError as error:
                why = error.strerror or error
                raise Failure(
                    f"{directory}: can't write `kubeconfig` and `env` here: {why}; name another --dir"
                ) from None
            api, proxy = world.serve_http()
            print(f"API server    {api}")
            print(f"data plane    {proxy}, an HTTP proxy in which the names of PD, TiKV and TiDB resolve")
            print(f"\nIn another terminal:\n\n    {hints.source(directory)}    # `sandbox_off` undoes it")
            print(f"    {hints.program()} run\n")
            print("Ctrl-C ends it; nothing is kept.", flush=True)
            stop.wait(clock)
        finally:
            world.stop()
    return 0

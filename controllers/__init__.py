"""Controllers: a change of an object leads to a sync of its key.

`controller.Controller` is the engine that all custom resources share: workers, retries, metrics, shutdown. Each custom
resource has a package of its own, which defines what a sync does and which events trigger it.
"""

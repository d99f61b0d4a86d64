"""Controllers: from a changed object to a sync of its key.

`controller.Controller` is the engine that all custom resources share: workers, retries, metrics, the end. What a sync
does, and which events lead to it, is in one package per custom resource.
"""

"""Names that carry the name of this library. A program overrides them with names of its own."""

from typing import Final

DISTRIBUTION: Final = "controllerkit"
"""The installed distribution, whose version a program reports."""

USER_AGENT: Final = "controllerkit"
"""The client that a request names, unless the program has a name of its own."""

EVENT_SOURCE: Final = "controllerkit"
"""The component that events come from, unless the program has a name of its own."""

METRIC_PREFIX: Final = "controllerkit"
"""The first part of the names of metrics that client-go and controller-runtime do not have."""

ANNOTATION_PREFIX: Final = "controllerkit.dev"
"""The domain of annotations by which users control a program."""

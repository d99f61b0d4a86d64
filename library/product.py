"""Names that contain the name of this library. A program may override them."""

from typing import Final

DISTRIBUTION: Final = "controllerkit"
"""The installed distribution, whose version a program reports."""

USER_AGENT: Final = "controllerkit"
"""The user agent of requests, unless the program sets one."""

EVENT_SOURCE: Final = "controllerkit"
"""The component that emits events, unless the program sets one."""

METRIC_PREFIX: Final = "controllerkit"
"""The first part of the names of metrics that client-go and controller-runtime do not have."""

ANNOTATION_PREFIX: Final = "controllerkit.dev"
"""The domain of annotations by which users control a program."""

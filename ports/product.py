"""Names that carry the name of this product. A library built from the generic rooms has names of its own."""

from typing import Final

DISTRIBUTION: Final = "tidb-operator-py"
"""The installed distribution, whose version a program reports."""

USER_AGENT: Final = "tidb-operator"
"""The client that a request names, unless the program has a name of its own."""

EVENT_SOURCE: Final = "tidb-controller-manager"
"""The component that events come from, unless the program has a name of its own."""

METRIC_PREFIX: Final = "tidb_operator"
"""The first part of the names of metrics that client-go and controller-runtime do not have."""

ANNOTATION_PREFIX: Final = "tidb.pingcap.com"
"""The domain of annotations by which users control the operator."""

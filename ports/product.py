"""Names that contain the name of the product. A library built from the generic packages has other names."""

from typing import Final

DISTRIBUTION: Final = "tidb-operator-py"
"""The installed distribution whose version a program reports."""

USER_AGENT: Final = "tidb-operator"
"""The default user agent of requests."""

EVENT_SOURCE: Final = "tidb-controller-manager"
"""The default source component of events."""

METRIC_PREFIX: Final = "tidb_operator"
"""The prefix of metrics that neither client-go nor controller-runtime has."""

ANNOTATION_PREFIX: Final = "tidb.pingcap.com"
"""The domain of the annotations with which users control the operator."""

"""What `kubectl explain` says of TidbInitializer, TidbDashboard, TidbNGMonitoring (`apis.descriptions`)."""

from collections.abc import Mapping

TEXTS: Mapping[str, str] = {
    "TidbInitializerSpec.cluster": "The TidbCluster, in the namespace of the TidbInitializer.",
    "TidbInitializerSpec.image": "An image with sh, nc, and python with MySQLdb, such as tnir/mysqlclient.",
    "TidbInitializerSpec.resources": "What a container of the pod needs and gets.",
    "TidbInitializerSpec.tlsClientSecretName": "The Secret with the certificate of a client of TiDB.",
    "TidbDashboardSpec.baseImage": "The image without its tag, such as pingcap/tidb-dashboard; empty: image.",
    "NGMonitoringSpec.baseImage": "The image without its tag, such as pingcap/ng-monitoring; empty: image.",
    "clusters": "The TidbCluster: one.",
    "pathPrefix": "The path below which a proxy shows the dashboard, such as /ui.",
    "telemetry": "Whether the dashboard reports how it is used; true if not given.",
    "experimental": "Whether the dashboard has features that are being tried out.",
    "listenOnLocalhostOnly": "Listen inside the pod only, for a proxy beside it.",
    "disableKeyVisualizer": "Leave the key visualizer out.",
    "ngMonitoring": "The server; what it sets wins over the same field beside it.",
    "retentionPeriod": "How long profiles and queries are kept, such as 3d.",
    "serviceAccountName": "The service account of the pod.",
    "permitHost": "From where users may come, such as 10.0.%.%; % (default) is everywhere.",
    "initSql": "SQL that is run once; statements end with a semicolon.",
    "initSqlConfigMap": "A ConfigMap with the SQL under the key init-sql, in place of initSql.",
    "passwordSecret": "A Secret with a key for each user; its value is the password.",
}

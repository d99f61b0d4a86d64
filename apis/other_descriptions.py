"""What `kubectl explain` says of the fields of TidbInitializer (`apis.descriptions`)."""

from collections.abc import Mapping

TEXTS: Mapping[str, str] = {
    "TidbInitializerSpec.cluster": "The TidbCluster, in the namespace of the TidbInitializer.",
    "TidbInitializerSpec.image": "An image with sh, nc, and python with MySQLdb, such as tnir/mysqlclient.",
    "TidbInitializerSpec.resources": "What a container of the pod needs and gets.",
    "TidbInitializerSpec.tlsClientSecretName": "The Secret with the certificate of a client of TiDB.",
    "serviceAccountName": "The service account of the pod.",
    "permitHost": "From where users may come, such as 10.0.%.%; % (default) is everywhere.",
    "initSql": "SQL that is run once; statements end with a semicolon.",
    "initSqlConfigMap": "A ConfigMap with the SQL under the key init-sql, in place of initSql.",
    "passwordSecret": "A Secret with a key for each user; its value is the password.",
}

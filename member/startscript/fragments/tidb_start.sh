echo "/tidb-server $*"
exec /tidb-server "$@"

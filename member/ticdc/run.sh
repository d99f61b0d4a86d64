echo "/cdc $*"
exec /cdc "$@"

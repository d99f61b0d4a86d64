if [ "${BINLOG_ENABLED:-}" = true ]; then
    set -- "$@" --enable-binlog=true
fi

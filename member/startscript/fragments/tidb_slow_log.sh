if [ -n "${SLOW_LOG_FILE:-}" ]; then
    set -- "$@" --log-slow-query="$SLOW_LOG_FILE"
fi

if [ -n "${STORE_LABELS:-}" ]; then
    set -- "$@" --labels "$STORE_LABELS"
fi

echo "/tikv-server $*"
exec /tikv-server "$@"

set -- \
    --name="$POD" \
    --join="$MASTERS" \
    --advertise-addr="$DOMAIN:$PORT" \
    --worker-addr="0.0.0.0:$PORT" \
    --config=/etc/dm-worker/dm-worker.toml
if [ -n "${STORE_LABELS:-}" ]; then
    set -- "$@" --labels "$STORE_LABELS"
fi

echo "/dm-worker $*"
exec /dm-worker "$@"

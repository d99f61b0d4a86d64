set -- \
    --listen-addr="$SCHEME://0.0.0.0:2379" \
    --advertise-listen-addr="$SCHEME://$DOMAIN:2379" \
    --backend-endpoints="$PD" \
    --config=/etc/pd/pd.toml
if [ -n "$MEMBER" ]; then
    set -- --name="$MEMBER" "$@"
fi

# Members that start at the same moment get in each other's way.
sleep "$(random_below 10)"

echo "/pd-server services $SERVICE $*"
exec /pd-server services "$SERVICE" "$@"

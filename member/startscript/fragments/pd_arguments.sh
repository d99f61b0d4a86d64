set -- \
    --data-dir="$DATA_DIR" \
    --name="$MEMBER" \
    --peer-urls="$SCHEME://0.0.0.0:2380" \
    --advertise-peer-urls="$SCHEME://$DOMAIN:2380" \
    --client-urls="$SCHEME://0.0.0.0:2379" \
    --advertise-client-urls="$SCHEME://$DOMAIN:2379" \
    --config=/etc/pd/pd.toml

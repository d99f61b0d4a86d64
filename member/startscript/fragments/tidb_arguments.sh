set -- \
    --store=tikv \
    --advertise-address="$DOMAIN" \
    --host=0.0.0.0 \
    --path="$PD" \
    --config=/etc/tidb/tidb.toml

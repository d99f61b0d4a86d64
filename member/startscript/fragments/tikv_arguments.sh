set -- \
    --pd="$PD" \
    --advertise-addr="$DOMAIN:20160" \
    --addr="$LISTEN:20160" \
    --status-addr="$LISTEN:20180"

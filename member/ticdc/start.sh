set -- server \
    --addr=0.0.0.0:8301 \
    --advertise-addr="$DOMAIN:8301" \
    --gc-ttl="$GC_TTL" \
    --log-file="$LOG_FILE" \
    --log-level="$LOG_LEVEL" \
    --pd="$PD"

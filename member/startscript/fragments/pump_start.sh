set -- \
    -pd-urls="$PD" \
    -L="$LOG_LEVEL" \
    -advertise-addr="$DOMAIN:8250" \
    -config=/etc/pump/pump.toml \
    -data-dir=/data \
    -log-file=

echo "/pump $*"
/pump "$@"
code=$?
if [ "$code" -eq 0 ]; then
    # Started again, it would register anew and take binlogs, which nobody would read once the pod is gone.
    echo "Pump has ended; if its node is offline, the pod can be removed"
    exec tail -f /dev/null
fi
exit "$code"

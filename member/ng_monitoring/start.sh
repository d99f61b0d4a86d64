set -- --pd.endpoints "$PD" \
    --advertise-address "$POD_NAME.$DOMAIN:$PORT" \
    --config /etc/ng-monitoring/ng-monitoring.toml \
    --storage.path /var/lib/ng-monitoring
if [ -n "$RETENTION" ]; then
    set -- "$@" --retention-period "$RETENTION"
fi
echo "/ng-monitoring-server $*"
exec /ng-monitoring-server "$@"

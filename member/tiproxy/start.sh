set -- --config=/etc/proxy/proxy.toml
# Older versions do not know the flag.
if /bin/tiproxy --help 2>&1 | grep -q advertise-addr; then
    set -- "$@" --advertise-addr="$DOMAIN"
fi

echo "/bin/tiproxy $*"
exec /bin/tiproxy "$@"

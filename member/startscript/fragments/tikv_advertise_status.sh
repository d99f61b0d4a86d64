set -- "$@" --advertise-status-addr="$DOMAIN:20180"

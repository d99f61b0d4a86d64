set -- "$@" --flash.proxy.advertise-status-addr="$DOMAIN:20292"

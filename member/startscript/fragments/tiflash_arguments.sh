set -- \
    --flash.proxy.advertise-addr="$DOMAIN:20170"

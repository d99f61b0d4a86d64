set -- "$@" \
    --ca=/var/lib/ticdc-tls/ca.crt \
    --cert=/var/lib/ticdc-tls/tls.crt \
    --key=/var/lib/ticdc-tls/tls.key

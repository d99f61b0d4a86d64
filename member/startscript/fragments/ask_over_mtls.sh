# ask_discovery PATH: what Discovery answers; fails when it refuses, or cannot be reached.
ask_discovery() {
    curl -sS --fail --max-time 3 --cacert "$CERTIFICATES/ca.crt" --cert "$CERTIFICATES/tls.crt" \
        --key "$CERTIFICATES/tls.key" "https://$DISCOVERY/$1" 2>/dev/null
}

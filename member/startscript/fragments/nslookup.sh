resolves() {
    nslookup "$DOMAIN" >/dev/null 2>&1
}

# What is reported in place of an answer begins with a semicolon.
addresses() {
    dig "$DOMAIN" A "$DOMAIN" AAAA +search +short 2>/dev/null | grep -v '^;'
}

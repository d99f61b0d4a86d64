addresses() {
    getent ahosts "$DOMAIN" | while read -r address _; do
        echo "$address"
    done
}

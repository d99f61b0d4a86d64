# encoded TEXT: how a path of Discovery carries TEXT.
encoded() {
    echo "$1" | base64 | tr -d '\n'
}

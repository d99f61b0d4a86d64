resolves() {
    [ -n "$(addresses)" ]
}

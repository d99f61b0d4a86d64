# say TEXT: to the kubelet, and to the log of the container.
say() {
    echo "$HOOK: $1"
    echo "$HOOK: $1" 2>/dev/null >/proc/1/fd/1
}

# finish CODE TEXT: after another code than 0 the kubelet emits an event; the pod stops all the same.
finish() {
    say "$2"
    exit "$1"
}

# seconds: the time since the machine started, which no change of its clock affects.
seconds() {
    read -r uptime _ </proc/uptime
    echo "${uptime%.*}"
}

has_time() {
    [ "$(seconds)" -lt "$END" ]
}

# ask METHOD URL [BODY]: what a server answers; fails if it refuses, cannot be reached, or the time is over.
ask() {
    has_time || return
    url=$2
    if ! command -v curl >/dev/null; then
        # BusyBox's wget
        if [ "$1" = GET ]; then
            wget -qO- -T 3 "$url"
        else
            wget -qO- -T 3 --post-data="${3-}" "$url"
        fi
        return
    fi
    set -- --request "$1" --data "${3-}"
    if [ -n "$CERTIFICATES" ]; then
        set -- "$@" --cacert "$CERTIFICATES/ca.crt" --cert "$CERTIFICATES/tls.crt" --key "$CERTIFICATES/tls.key"
    fi
    curl --silent --show-error --fail --max-time 3 "$@" "$url"
}

END=$(($(seconds) + LIMIT))

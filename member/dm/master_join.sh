set -- \
    --data-dir="$DATA_DIR" \
    --name="$POD" \
    --peer-urls="$SCHEME://0.0.0.0:$PEER_PORT" \
    --advertise-peer-urls="$SCHEME://$DOMAIN:$PEER_PORT" \
    --master-addr=":$CLIENT_PORT" \
    --advertise-addr="$DOMAIN:$CLIENT_PORT" \
    --config=/etc/dm-master/dm-master.toml

# A master with data knows the others. One without data must not begin a cluster of its own accord: it asks until
# Discovery says which masters to join, or that this pod is the one to begin.
is_decision() {
    case $1 in
    --join=?* | --initial-cluster=?*) return 0 ;;
    esac
    return 1
}
if [ -s "$DATA_DIR/join" ]; then
    # dm-master wrote it when it joined: name=url,name=url, with the ports of masters among themselves
    set -- "$@" --join="$(sed "s/[^,=]*=//g; s/:$PEER_PORT/:$CLIENT_PORT/g" "$DATA_DIR/join")"
elif [ ! -d "$DATA_DIR/member/wal" ]; then
    until decision=$(ask_discovery "new/$(encoded "$DOMAIN:$PEER_PORT")/dm") && is_decision "$decision"; do
        echo "waiting for Discovery to tell which masters to join"
        sleep "$(random_below 5)"
    done
    set -- "$@" "$decision"
fi

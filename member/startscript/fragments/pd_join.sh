# A member with data knows its peers. One without data must not begin a cluster of its own accord: it asks until
# Discovery says which members to join, or that this pod is the one to begin.
is_decision() {
    case $1 in
    --join=?* | --initial-cluster=?*) return 0 ;;
    esac
    return 1
}
if [ -s "$DATA_DIR/join" ]; then
    # pd-server wrote it when it joined: name=url,name=url
    set -- "$@" --join="$(sed 's/[^,=]*=//g' "$DATA_DIR/join")"
elif [ ! -d "$DATA_DIR/member/wal" ]; then
    until decision=$(ask_discovery "new/$(encoded "$DOMAIN:2380")") && is_decision "$decision"; do
        echo "waiting for Discovery to tell which members to join"
        sleep "$(random_below 5)"
    done
    set -- "$@" "$decision"
fi

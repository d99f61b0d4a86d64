set -- "$@" \
    --data-dir="$DATA_DIR" \
    --capacity="$CAPACITY" \
    --config=/etc/tikv/tikv.toml

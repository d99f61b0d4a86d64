set -- "$@" \
    --flash.service_addr="$DOMAIN:3930" \
    --raft.pd_addr="$PD"
if [ -n "${STORE_LABELS:-}" ]; then
    set -- "$@" --labels "$STORE_LABELS"
fi

exec /tiflash/tiflash server --config-file /etc/tiflash/config_templ.toml -- "$@"

set -- "$@" --config=/etc/ticdc/ticdc.toml

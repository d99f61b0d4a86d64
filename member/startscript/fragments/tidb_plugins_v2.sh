set -- "$@" --plugin-dir=/plugins --plugin-load="$PLUGINS"

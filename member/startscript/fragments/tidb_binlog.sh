set -- "$@" --enable-binlog=true

set -- "$@" --join="$JOIN"

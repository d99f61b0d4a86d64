trap exit TERM
tries=0
while ! nc -zv -w 3 "$HOST" "$PORT"; do
    tries=$((tries + 1))
    if [ "$tries" -ge "$MOST" ]; then
        reason="wait for TiDB: $HOST:$PORT was still closed after $MOST tries, one a second"
        echo "$reason" >&2
        echo "$reason" > /dev/termination-log
        exit 1
    fi
    sleep 1
done

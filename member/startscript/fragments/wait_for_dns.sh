# Others reach this pod by its name: do not start before DNS knows it.
elapsed=0
while :; do
    sleep 1
    elapsed=$((elapsed + 1))
    if [ "$elapsed" -ge "$START_TIMEOUT" ]; then
        echo "$DOMAIN did not resolve within $START_TIMEOUT s"
        exit 1
    fi
    if resolves; then
        echo "$DOMAIN resolves"
        break
    fi
    echo "waiting for $DOMAIN to resolve"
done

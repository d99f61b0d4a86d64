# A region whose leader just stops has none for seconds, so leaders leave this store first. Only curl can let them
# return (DELETE).
if ! command -v curl >/dev/null; then
    finish 1 "this image has no curl, so region leaders stay"
fi

# A store, its labels and its state are objects of their own.
stores=$(insist GET "$PD/pd/api/v1/stores" | tr -d '[:space:]' | tr '{' '\n')
if [ -z "$stores" ]; then
    finish 1 "PD does not list its stores, so region leaders stay"
fi
store=$(printf '%s\n' "$stores" | grep -F "\"address\":\"$DOMAIN:20160\"" | sed 's/.*"id":\([0-9]*\).*/\1/')
if [ -z "$store" ]; then
    finish 0 "PD has no store $DOMAIN:20160"
fi
if [ "$(printf '%s\n' "$stores" | grep -cF '"state_name":"Up"')" -lt 2 ]; then
    finish 0 "no other store is Up, so region leaders stay"
fi

# An eviction of the operator or the user is theirs to end. The next start ends one with this mark.
listed=$(evictions) || finish 1 "PD does not list its schedulers, so region leaders stay"
if ! is_evicted "$store"; then
    if ! echo "$store" >"$MARK"; then
        finish 1 "$MARK cannot be written, so region leaders stay"
    fi
    insist POST "$PD/pd/api/v1/schedulers" "{\"name\":\"evict-leader-scheduler\",\"store_id\":$store}" >/dev/null ||
        finish 1 "PD does not evict the leaders of store $store"
fi

least=
while has_time; do
    left=$(ask GET "$PD/pd/api/v1/store/$store" | tr ',' '\n' | grep '"leader_count":' | sed 's/[^0-9]//g')
    if [ "$left" = 0 ]; then
        finish 0 "store $store leads no region"
    fi
    if [ -n "$left" ] && [ "$left" -lt "${least:-$((left + 1))}" ]; then
        least=$left
        progress=$(seconds)
    elif [ -n "$least" ] && [ $(($(seconds) - progress)) -ge 30 ]; then
        finish 1 "store $store still leads $least regions, as 30 s ago"
    fi
    sleep 1
done
finish 1 "store $store still leads ${least:-some} regions after $LIMIT s"

PD=${PD%%,*}
case $PD in
*://*) ;;
*) PD=$SCHEME://$PD ;;
esac

# insist METHOD URL [BODY]: asks five times at most, because PD may be electing a leader.
insist() {
    tries=1
    until ask "$@"; do
        if [ "$tries" -ge 5 ] || ! has_time; then
            return 1
        fi
        tries=$((tries + 1))
        sleep 1
    done
}

# evictions: PD's schedulers, and the stores of the one that evicts leaders; fails if PD does not say.
evictions() {
    schedulers=$(insist GET "$PD/pd/api/v1/schedulers") || return 1
    ranges=
    case $schedulers in
    *'"evict-leader-scheduler"'*)
        ranges=$(insist GET "$PD/pd/api/v1/scheduler-config/evict-leader-scheduler/list") || return 1
        ;;
    esac
    echo "$schedulers$ranges" | tr -d '[:space:]'
}

# is_evicted STORE: by what PD lists; PD before 4.0 has a scheduler for each store.
is_evicted() {
    case $listed in
    *"\"evict-leader-scheduler-$1\""* | *"\"$1\":["*) return 0 ;;
    esac
    return 1
}

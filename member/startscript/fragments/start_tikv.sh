# The hook before the last stop has marked an eviction that it began: leaders return once TiKV serves.
if [ ! -f "$MARK" ]; then
    exit 0
fi
read -r store <"$MARK"
case $store in
'' | *[!0-9]*) store=0 ;;
esac

# may_lead: true if PD has no eviction of the store. A new leader of PD lists no scheduler at first.
may_lead() {
    ask DELETE "$PD/pd/api/v1/schedulers/evict-leader-scheduler-$store" >/dev/null 2>&1 && return
    listed=$(evictions 2>/dev/null) || return 1
    case $listed in
    *-scheduler\"*) ! is_evicted "$store" ;;
    *) return 1 ;;
    esac
}

while has_time; do
    if ask GET "$OWN/status" >/dev/null 2>&1 && may_lead; then
        rm -f "$MARK"
        finish 0 "store $store may lead regions again"
    fi
    sleep 1
done
# A hook that fails would restart TiKV.
finish 0 "no region leads back to store $store: run pd-ctl scheduler remove evict-leader-scheduler-$store"

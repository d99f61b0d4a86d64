# The capture gives up ownership, then its tables; if it just stopped, the owner would miss it only after seconds.
failures=0
while has_time && [ "$failures" -lt 15 ]; do
    status=$(ask GET "$OWN/status" | tr -d '[:space:]' | tr '{' ',' | tr ',' '\n')
    if [ "$(ask GET "$OWN/api/v1/captures" | tr -d '[:space:]' | tr '{' '\n' | grep -c '"id":')" = 1 ]; then
        finish 0 "there is no other capture"
    fi
    left=
    if printf '%s\n' "$status" | grep -qF '"is_owner":true'; then
        ask POST "$OWN/api/v1/owner/resign" >/dev/null && left=owner
    else
        capture=$(printf '%s\n' "$status" | grep '"id":' | sed 's/"id":"//; s/".*//')
        left=$(ask PUT "$OWN/api/v1/captures/drain" "{\"capture_id\":\"$capture\"}" | sed 's/[^0-9]//g')
    fi
    case $left in
    0) finish 0 "the capture has no tables" ;;
    '') failures=$((failures + 1)) ;;
    *) failures=0 ;;
    esac
    sleep 1
done
finish 1 "the capture has not handed over its tables"

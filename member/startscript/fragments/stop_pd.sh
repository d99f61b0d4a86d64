# PD's leader hands over; if it just stopped, no transaction would get a timestamp for seconds.
while has_time; do
    leader=$(ask GET "$OWN/pd/api/v1/leader" | tr -d '[:space:]')
    case $leader in
    *"\"name\":\"$MEMBER\""*)
        if [ "$(ask GET "$OWN/pd/api/v1/health" | tr -d '[:space:]' | tr '{' '\n' | grep -c '"health":true')" = 1 ]; then
            finish 0 "no other member of PD is healthy, so $MEMBER stays its leader"
        fi
        ask POST "$OWN/pd/api/v1/leader/resign" >/dev/null
        ;;
    *'"name":"'*) finish 0 "another member leads PD" ;;
    esac
    sleep 1
done
finish 1 "after $LIMIT s no other member is known to lead PD"

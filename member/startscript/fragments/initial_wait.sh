sleep "$INITIAL_WAIT"

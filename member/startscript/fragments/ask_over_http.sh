# ask_discovery PATH: what Discovery answers; fails when it refuses, or cannot be reached.
ask_discovery() {
    wget -qO- -T 3 "http://$DISCOVERY/$1" 2>/dev/null
}

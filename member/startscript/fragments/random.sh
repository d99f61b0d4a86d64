# random_below N: a number from 0 to N-1.
random_below() {
    drawn=$(od -An -N2 -tu2 /dev/urandom 2>/dev/null)
    echo $((${drawn:-$$} % $1))
}

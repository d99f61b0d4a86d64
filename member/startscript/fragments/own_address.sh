# After the pod moved, DNS may still name its old address.
resolves() {
    own=" $(hostname -I) "
    for address in $(addresses); do
        case $own in
        *" $address "*) return 0 ;;
        esac
    done
    return 1
}

# Members that join at the same moment get in each other's way.
sleep "$(random_below 10)"

echo "/dm-master $*"
exec /dm-master "$@"

# TSO and scheduling are services of their own.
set -- services api "$@"

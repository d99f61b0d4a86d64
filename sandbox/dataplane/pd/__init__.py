"""PD: the shared state of its members (`cluster`, `stores`, `regions`, `etcd`), a member's process, its HTTP API."""

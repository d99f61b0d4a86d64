"""PD: what its members share (`cluster`, `stores`, `regions`, `etcd`), one member's process, its HTTP answers."""

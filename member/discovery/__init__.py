"""Discovery: the service that PD pods ask at their first start whether to bootstrap a cluster or to join one."""

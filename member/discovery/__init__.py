"""Discovery: the little service that tells PD's pods at their first start whether to found a cluster or to join one."""

"""Components whose pods are stores of PD: the common code of TiKV and TiFlash, used once for each kind of store."""

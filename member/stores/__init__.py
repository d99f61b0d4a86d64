"""Components whose pods PD knows as stores: what of TiKV and of TiFlash is the same, once for each kind of store."""

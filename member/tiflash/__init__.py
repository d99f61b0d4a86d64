"""TiFlash, the column store: learners of TiKV's regions, on separate stores."""

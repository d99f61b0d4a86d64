"""TiFlash, the column store: learners of TiKV's regions, on stores of its own."""

"""DM: masters with a quorum, workers that each replicate one source, and the Discovery for the masters' start."""

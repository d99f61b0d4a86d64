"""DM: masters with a quorum, workers that each replicate a source, and the Discovery that masters ask."""

"""What is remembered of one cluster between two reconciles, for as long as the process lives."""

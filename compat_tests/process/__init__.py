"""`klamm serve` as a process: how it starts, stops, fails, and what it survives."""

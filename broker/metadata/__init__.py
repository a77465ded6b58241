"""Topics, partitions, configs and producer id blocks: the fold of the `__cluster_metadata` log."""

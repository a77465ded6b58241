"""Transaction coordinators in the broker: shards over the log, markers, transactional writes."""

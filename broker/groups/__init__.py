"""Group coordinators in the broker: shards over the log, timers, topics, settings."""

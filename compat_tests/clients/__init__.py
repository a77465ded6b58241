"""Unmodified Kafka clients against a running broker; nothing here knows how the broker works."""

"""Exactly-once, as real clients see it: transactions committed, aborted, fenced, timed out, and
workloads whose brokers and clients are killed and paused, judged by the checker of histories."""

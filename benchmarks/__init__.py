"""klamm and Apache Kafka side by side: the same clients, the same machine, one run.

    python -m benchmarks

See docs/benchmarks.md for what each row means. Nothing here but micro.py imports klamm: both
brokers are processes that are spoken to over the protocol only.
"""

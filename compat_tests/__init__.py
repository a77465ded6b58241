"""Proof by comparison: real clients and Apache Kafka itself, talking to klamm as a process.

Nothing here imports klamm. Every test starts `klamm serve` like a user does and speaks the
protocol, so a test that passes holds for the installed program.
"""

"""Spark's own Kafka connector, unmodified, and the programs of spark_examples on top of it.

Both are tested in this folder because they share what is expensive: one Spark session, which is one
JVM, and one broker. With KLAMM_COMPAT_BROKER=kafka the same tests run against Apache Kafka.
"""

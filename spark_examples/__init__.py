"""One pipeline of a small shop on Spark and Kafka: seven programs, each with a proof of its own.

They are ordinary Spark programs: they know a bootstrap address and nothing of the broker behind it.
README.md shows how they are run.
"""

"""Apache Kafka's own functions as oracle: the assignors, and the hashes that decide what is stored.

Nothing here imports klamm. `python -m compat_tests.oracle` asks Java and writes what it answers
beside klamm's unit tests, which compare klamm with it and need no Java; the test here asks again,
so that the written answers stay those of Kafka.
"""

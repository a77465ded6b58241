"""The offline checker: reads a data directory, finds what is wrong, changes nothing.

It works on any file system of the log, so that crash tests can ask it after each recovery. It
shares file names and record batches with the rest of `log/`, and no code that reads files: what the
broker gets wrong must not be wrong here in the same way.
"""

"""Histories of what clients did and saw, and the checker of the promises that a broker made them.

`python -m compat_tests.history FILE` reads a history, one event in JSON on each line, and prints
what is wrong with it. It knows nothing of the broker and shares no code with it: what is checked
follows from the events alone. events.py describes them, rules.py lists what is checked.
"""

"""The twin: the same bytes to Apache Kafka and to klamm, and their answers field by field.

A test describes a request once as plain data (`codec`), sends it to both brokers over a
conversation (`conversation`), and the comparison (`comparison`) fails on any difference that is
neither in the short list of fields that may differ (`may_differ`) nor a deviation that
`docs/deviations.md` explains and the test names at exactly that place (`deviations`).
"""

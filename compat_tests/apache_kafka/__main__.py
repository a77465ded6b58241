"""Download Apache Kafka, before pytest takes over what is printed; nothing when it is there."""

from __future__ import annotations

import sys

from compat_tests.apache_kafka.jars import MissingRequirementError, jars

try:
    jars()
except MissingRequirementError as problem:
    sys.exit(str(problem))

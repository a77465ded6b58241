"""Apache Kafka from its Maven artifacts: its jars, one running node, its command line tools."""

from compat_tests.apache_kafka.jars import KAFKA_VERSION, MissingRequirementError, jars
from compat_tests.apache_kafka.server import ApacheKafka, ApacheKafkaError, small_kafka
from compat_tests.apache_kafka.tools import TOOLS, tool, tool_command

__all__ = [
    "KAFKA_VERSION",
    "TOOLS",
    "ApacheKafka",
    "ApacheKafkaError",
    "MissingRequirementError",
    "jars",
    "small_kafka",
    "tool",
    "tool_command",
]

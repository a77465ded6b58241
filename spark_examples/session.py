"""The Spark session of every program here: one JVM, small, and with the Kafka connector."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from pyspark.sql import SparkSession

from spark_examples.jars import connector_jars, require_java

# Times as in the events.
CONF = {"spark.sql.session.timeZone": "UTC", "spark.ui.showConsoleProgress": "false"}
# For a laptop: two shuffle partitions instead of 200, no web page.
LOCAL_CONF = {
    **CONF,
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


def spark_session(
    name: str, master: str | None = None, conf: Mapping[str, str] | None = None
) -> SparkSession:
    """The running session, or a new one.

    Under `spark-submit`, which has chosen master and jars already, only the time zone is set.

    Args:
        master: as Spark names it; None means two threads of this machine.
        conf: further settings, which win. With `spark.jars` or `spark.jars.packages` among them
            the connector comes from there.

    Raises:
        MissingRequirementError: when Java or the connector cannot be had.
    """
    builder = SparkSession.Builder().appName(name)
    settings = dict(conf or {})
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        settings = {**CONF, **settings}
        if master is not None:
            builder = builder.master(master)
    elif SparkSession.getActiveSession() is None:
        require_java()
        master = master or "local[2]"
        settings = {**defaults(master), **settings}
        if is_local(master):
            # The workers must be this Python, which has the packages that the programs import.
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        if not {"spark.jars", "spark.jars.packages"}.intersection(settings):
            settings["spark.jars"] = ",".join(map(str, connector_jars()))
        builder = builder.master(master)
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def defaults(master: str) -> dict[str, str]:
    """What holds unless the user says otherwise; a cluster decides most of it itself."""
    return LOCAL_CONF if is_local(master) else CONF


def is_local(master: str) -> bool:
    """Whether Spark runs on this machine alone."""
    return master.startswith("local")

"""The Spark session of every program here: one JVM, small, and with the Kafka connector."""

from __future__ import annotations

import functools
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping

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
    # Of a batch in Python that is stopped half way, Spark searches the trace by a pattern that goes
    # a call deeper with each character.
    "spark.driver.extraJavaOptions": "-Xss16m",
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
    # What fails here is raised. Ctrl-C would be told of by a trace, too.
    logging.disable()
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    logging.disable(logging.NOTSET)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, functools.partial(_interrupt, spark))
    return spark


def _interrupt(spark: SparkSession, *_: object) -> None:
    """What Ctrl-C does. PySpark's own handler asks Spark on a connection that is waiting for an
    answer, which fails."""
    # What comes next is the end of the program, and of its connections.
    cut_short(spark, spark.sparkContext.cancelAllJobs).join()
    raise KeyboardInterrupt


def cut_short(spark: SparkSession, stop: Callable[[], None]) -> threading.Thread:
    """Stop work without a word: it fails in many places, and each would print a trace.

    In another thread, which has a connection to Spark of its own; it has to end before the program.
    """
    logging.disable()

    def quietly() -> None:
        spark.sparkContext.setLogLevel("OFF")
        stop()

    thread = threading.Thread(target=quietly)
    thread.start()
    return thread


def defaults(master: str) -> dict[str, str]:
    """What holds unless the user says otherwise; a cluster decides most of it itself."""
    return LOCAL_CONF if is_local(master) else CONF


def is_local(master: str) -> bool:
    """Whether Spark runs on this machine alone."""
    return master.startswith("local")

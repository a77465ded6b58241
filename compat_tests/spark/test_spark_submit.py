"""A program under spark-submit, as the README shows it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

from pyspark.sql import SparkSession

from compat_tests.clients.fixtures import Broker
from compat_tests.spark.connector import SMALL_QUERIES
from compat_tests.spark.shop import GENERATE, Shop
from spark_examples.jars import HERE, connector_jars

SUBMIT_TIMEOUT_S = 280


def test_spark_submit(
    spark: SparkSession, broker: Broker, topic_names: Iterator[str], tmp_path: Path
) -> None:
    """Modules come from the zip file, and the connector from --jars."""
    shop = Shop(broker.bootstrap, next(topic_names), tmp_path)
    modules = tmp_path / "spark_examples.zip"
    with ZipFile(modules, "w") as archive:
        for path in HERE.glob("*.py"):
            archive.write(path, f"{HERE.name}/{path.name}")
    small = ("--blocks", "1", "--only", "customers")
    done = subprocess.run(
        [
            *(str(Path(sys.executable).with_name("spark-submit")), "--master", "local[1]"),
            *("--jars", ",".join(map(str, connector_jars())), "--py-files", str(modules)),
            *(f"--conf={key}={value}" for key, value in SMALL_QUERIES.items()),
            *(str(HERE / "generate.py"), *shop.arguments(GENERATE), *small),
        ],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SUBMIT_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    shop.check(GENERATE, *small)

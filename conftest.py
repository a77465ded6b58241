"""Test settings that hold for the whole tree."""

import os
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

# Folders whose tests share a JVM that is dear to start: each folder runs in one process.
TOGETHER = ("compat_tests/twin/", "compat_tests/spark/")

# What is long starts first, so that no process is left alone with it at the end. What waits more
# than it computes (members that are killed, sessions, restarts) follows the two folders above: it
# falls to the third process, and leaves the two cores to the others. The many short tests come
# last and fill what is left.
ORDER = (
    *TOGETHER,
    "compat_tests/groups/test_churn.py",
    "compat_tests/transactions/test_chaos.py",
    "compat_tests/process/test_kill_loop.py",
    "compat_tests/transactions/",
    "compat_tests/groups/",
    "compat_tests/disk/",
    "compat_tests/process/",
    "compat_tests/",
    "broker/",
    "",
)

settings.register_profile(
    "ci",
    max_examples=200,
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("long", settings.get_profile("ci"), max_examples=5000, derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that can't run on this machine says why, and is skipped; in CI, where it would prove
    nothing, it fails."""
    report = yield
    if report.skipped and os.environ.get("CI") == "true":
        report.outcome = "failed"
    return report


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def place(item: pytest.Item) -> int:
        return next(at for at, path in enumerate(ORDER) if item.nodeid.startswith(path))

    items.sort(key=place)


class FilesAndFolders(LoadFileScheduling):
    """Each file of tests in one process, and each folder of `TOGETHER`; the first go first."""

    def _split_scope(self, nodeid: str) -> str:
        folders = (folder for folder in TOGETHER if nodeid.startswith(folder))
        return next(folders, super()._split_scope(nodeid))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FilesAndFolders:
    # Its own order, by the number of tests, would leave the longest for the end.
    config.option.loadscopereorder = False
    return FilesAndFolders(config, log)

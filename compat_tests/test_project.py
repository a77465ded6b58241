"""The project itself: what is installed, what the commands need, and the container's description.

Lists that a person keeps by hand (packages, import contracts, files copied into the image) are
compared with the folders, so that a new folder can't be forgotten.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from compat_tests.clients.kcat import kcat
from compat_tests.klamm_process import KlammProcess
from compat_tests.ports import free_ports

REPOSITORY = Path(__file__).resolve().parent.parent
INSTALLED_FOLDERS = ("wire", "log", "coordinator", "broker")
NOT_INSTALLED = {"tests", "tools", "__pycache__"}
PIP_TIMEOUT_S = 600
COMMAND_TIMEOUT_S = 60


def pyproject() -> dict[str, Any]:
    return tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))


def compose() -> dict[str, Any]:
    described = yaml.safe_load((REPOSITORY / "docker-compose.yml").read_text(encoding="utf-8"))
    assert isinstance(described, dict)
    return described


# What is installed


def test_package_list_is_the_tree() -> None:
    found = set()
    for folder in INSTALLED_FOLDERS:
        for module in (REPOSITORY / folder).rglob("*.py"):
            parts = module.parent.relative_to(REPOSITORY).parts
            if not NOT_INSTALLED.intersection(parts):
                found.add(".".join(("klamm", *parts)))
    listed = pyproject()["tool"]["setuptools"]["packages"]
    assert sorted(listed) == sorted(found)
    assert len(listed) == len(set(listed))


def test_folders_are_mapped_and_typed() -> None:
    mapping = pyproject()["tool"]["setuptools"]["package-dir"]
    assert mapping == {f"klamm.{folder}": folder for folder in INSTALLED_FOLDERS}
    for folder in INSTALLED_FOLDERS:
        assert (REPOSITORY / folder / "py.typed").is_file(), f"{folder}/py.typed is missing"


def test_every_folder_has_an_import_contract() -> None:
    """A folder that import-linter does not know may import anything, and nobody is told."""
    folders = {module.parent.name for module in REPOSITORY.glob("[a-z]*/*.py")}
    known = set(pyproject()["tool"]["importlinter"]["root_packages"])
    assert {package.removeprefix("klamm.") for package in known} == folders


@pytest.mark.timeout(PIP_TIMEOUT_S)
def test_install_in_an_empty_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`pip install .` gives a `klamm` that runs, with types and without tests, also where nothing
    can be compiled."""
    source = tmp_path / "source"
    unwanted = shutil.ignore_patterns("__pycache__")
    for folder in INSTALLED_FOLDERS:
        shutil.copytree(REPOSITORY / folder, source / folder, ignore=unwanted)
    for name in ("pyproject.toml", "setup.py", "README.md"):
        shutil.copy(REPOSITORY / name, source)
    environment = tmp_path / "environment"
    run([sys.executable, "-m", "venv", str(environment)])
    monkeypatch.setenv("KLAMM_PURE", "1")
    # Where the tests find klamm.
    monkeypatch.delenv("PYTHONPATH", raising=False)
    run([str(environment / "bin" / "pip"), "install", "--quiet", str(source)], PIP_TIMEOUT_S)
    program = str(environment / "bin" / "klamm")
    assert "serve" in run([program, "--help"])
    assert run([program, "--version"]) == klamm_version("pure Python")

    (package,) = environment.glob("lib/python3*/site-packages/klamm")
    for folder in INSTALLED_FOLDERS:
        assert (package / folder / "py.typed").is_file(), f"klamm.{folder} has no py.typed"
    assert not [path for path in package.rglob("*") if path.name in ("tests", "tools")]

    with RunningCommand([program], tmp_path / "data") as broker:
        assert f"broker 1 at {broker.bootstrap}" in list_brokers(broker.bootstrap)


def test_what_is_tested_is_compiled() -> None:
    """`make test` shows its compiled modules to real clients. To be told otherwise is right when
    tests are run by hand, on the sources."""
    if "PYTHONPATH" not in os.environ:
        pytest.skip("the tests run on the sources; `make test` compiles them first")
    printed = run([sys.executable, "-m", "klamm.broker", "--version"])
    assert printed == klamm_version("compiled")


def klamm_version(kind: str) -> str:
    return f"klamm {pyproject()['project']['version']} ({kind})\n"


# What the commands need


def test_ci_runs_the_test_command() -> None:
    script = REPOSITORY / ".ci" / "run"
    assert script.stat().st_mode & stat.S_IXUSR, ".ci/run can't be executed"
    lines = script.read_text(encoding="utf-8").splitlines()
    assert "set -euo pipefail" in lines
    assert lines[-1] == "exec make test"


def test_make_lists_its_commands() -> None:
    menu = run(["make", "--no-print-directory", "-C", str(REPOSITORY)])
    listed = [line.split()[1] for line in menu.splitlines()]
    assert listed == [
        *("help", "serve", "test", "check", "unit"),
        *("bench", "bench-producers", "bench-disk", "bench-growth", "bench-spark", "micro"),
        *("long", "churn", "chaos", "pipeline", "clean"),
    ]


@pytest.mark.parametrize("installs", [True, False])
def test_missing_requirements(tmp_path: Path, installs: bool) -> None:
    """What is missing is installed where that is possible, and otherwise named: one line each."""
    calls = tmp_path / "calls"
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("bash", "sed"):
        (tools / name).symlink_to(shutil.which(name) or name)
    outcome = f"PATH={os.environ['PATH']}; install -m 755 /dev/null {tools}/kcat"
    if not installs:
        outcome = "exit 100"
    body = f'echo "$@" >> {calls}; if [ "$1" = install ]; then {outcome}; fi'
    write_script(tools / "apt-get", body)
    write_script(tools / "mvn", "exit 0")

    done = subprocess.run(
        [REPOSITORY / ".ci" / "requirements", "maven", "kcat"],
        env={"PATH": str(tools)},
        capture_output=True,
        text=True,
        timeout=COMMAND_TIMEOUT_S,
        check=False,
    )
    can_install = os.geteuid() == 0 and Path("/etc/debian_version").exists()
    made = calls.read_text(encoding="utf-8").splitlines() if calls.exists() else []
    assert [call.split()[0] for call in made] == (["update", "install"] if can_install else [])
    assert all("maven" not in call for call in made)
    if can_install and installs:
        assert done.returncode == 0, done.stderr
    else:
        assert done.returncode == 1
        named = [line for line in done.stderr.splitlines() if line.startswith("missing:")]
        assert named == ["missing: kcat, on the PATH (on Debian: apt-get install kcat)"]


@pytest.mark.parametrize(
    ("version", "modules", "accepted"),
    [
        ('openjdk version "17.0.15" 2025-04-15', "jdk.compiler@17.0.15", True),
        ('openjdk version "25" 2025-09-16', "java.base@25 jdk.compiler@25", True),
        ('openjdk version "11.0.2" 2019-01-15', "jdk.compiler@11.0.2", False),
        ('java version "1.8.0_292"', "", False),
        ('openjdk version "17.0.15" 2025-04-15', "java.base@17.0.15", False),
    ],
)
def test_java_is_judged_by_version_and_compiler(
    tmp_path: Path, version: str, modules: str, accepted: bool
) -> None:
    (tmp_path / "bin").mkdir()
    write_script(
        tmp_path / "bin" / "java",
        f"if [ \"$1\" = -version ]; then echo '{version}' >&2; else echo '{modules}'; fi",
    )
    # An apt-get that does nothing keeps the check from installing anything here.
    write_script(tmp_path / "apt-get", "exit 100")
    done = subprocess.run(
        [REPOSITORY / ".ci" / "requirements", "java"],
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "JAVA_HOME": str(tmp_path)},
        capture_output=True,
        timeout=COMMAND_TIMEOUT_S,
        check=False,
    )
    assert (done.returncode == 0) == accepted


@pytest.mark.parametrize("optimised", [True, False])
def test_choice_of_python(tmp_path: Path, optimised: bool) -> None:
    """The first python3 on the PATH, unless it is one that makes the broker slow; where only one
    will do, that one."""
    fake = tmp_path / "python3"
    # Asked for its version and modules it will do; asked how it was built, it says so.
    write_script(fake, f'case "$2" in *enable-optimizations*) exit {int(not optimised)};; esac')
    system = Path("/usr/bin/python3")
    asked = [str(system), "-c", "import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))"]
    has_system = system.exists() and subprocess.run(asked, check=False).returncode == 0
    chosen = subprocess.run(
        [REPOSITORY / ".ci" / "python"],
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=COMMAND_TIMEOUT_S,
        check=True,
    ).stdout.strip()
    assert chosen == ("python3" if optimised or not has_system else str(system))


# What is written about it


def test_page_of_apis_is_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    # From the sources: compiled modules have no docstrings.
    monkeypatch.delenv("PYTHONPATH", raising=False)
    printed = run([sys.executable, "-m", "klamm.broker.handlers.page"])
    written = (REPOSITORY / "docs" / "apis.md").read_text(encoding="utf-8")
    assert written == printed, "python -m klamm.broker.handlers.page > docs/apis.md"


def test_limits_that_can_be_set() -> None:
    """docs/limits.md names the default that the broker has."""
    script = """if True:
        import json
        from klamm.broker.config.tables import broker_definitions
        defaults = {name: d.default for name, d in broker_definitions().items()}
        differences = {name: d.difference and d.difference.kafka_default
                       for name, d in broker_definitions().items()}
        print(json.dumps([defaults, differences]))
    """
    defaults, kafka_defaults = json.loads(run([sys.executable, "-c", script]))
    rows = re.findall(r"^\| `([a-z.]+)` \| (\S+) \| .* \| (.*) \|$", limits_page(), re.MULTILINE)
    assert rows
    for name, default, beside in rows:
        assert defaults[name] == default, name
        if beside.startswith("Kafka "):
            assert beside.split()[1].rstrip(",") == kafka_defaults[name], name
        if beside == "as Kafka":
            assert kafka_defaults[name] is None, name


def test_limits_that_are_fixed() -> None:
    """docs/limits.md has the value that stands in the code, and misses none of the broker's."""
    pattern = r"^\| `(\S+\.py)` `(\w+)` \| (\S+) \|"
    written = {
        (file, name): float(value)
        for file, name, value in re.findall(pattern, limits_page(), re.MULTILINE)
    }
    for (file, name), value in written.items():
        assert constants(REPOSITORY / file).get(name) == value, f"{file}: {name}"
    for path in [*(REPOSITORY / "broker").rglob("*.py"), REPOSITORY / "log" / "environment.py"]:
        file = path.relative_to(REPOSITORY)
        if NOT_INSTALLED.isdisjoint(file.parts):
            for name in constants(path):
                if re.fullmatch(r"[A-Z]\w*_MAX", name) and not name.startswith("INT"):
                    assert (str(file), name) in written, f"docs/limits.md lacks {file}: {name}"


def limits_page() -> str:
    return (REPOSITORY / "docs" / "limits.md").read_text(encoding="utf-8")


def constants(path: Path) -> dict[str, float]:
    """The numbers that a module gives names to, also as defaults in a class."""
    found: dict[str, float] = {}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        target: ast.expr | None = None
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
        elif isinstance(node, ast.AnnAssign):
            target = node.target
        if isinstance(target, ast.Name) and isinstance(node, ast.Assign | ast.AnnAssign):
            number = product(node.value)
            if number is not None:
                found[target.id] = number
    return found


def product(node: ast.expr | None) -> float | None:
    """The value of a number, or of numbers joined by `*` and `**`; None for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return node.value
    if isinstance(node, ast.BinOp):
        left, right = product(node.left), product(node.right)
        if left is not None and right is not None:
            if isinstance(node.op, ast.Mult):
                return left * right
            if isinstance(node.op, ast.Pow):
                return float(left**right)
    return None


# The container


def test_compose_describes_one_broker() -> None:
    described = compose()
    assert set(described) == {"services", "volumes"}
    (service,) = described["services"].values()
    assert set(service) == {"build", "command", "ports", "volumes"}
    assert service["build"] == "."
    # Only this machine reaches the port: the broker has no authentication.
    assert service["ports"] == ["127.0.0.1:9092:9092"]
    (mount,) = service["volumes"]
    volume, _, folder = mount.partition(":")
    assert list(described["volumes"]) == [volume]
    assert f"--data-dir={folder}" in service["command"]


def test_image_has_every_installed_folder() -> None:
    lines = (REPOSITORY / "Dockerfile").read_text(encoding="utf-8").splitlines()
    copied = [line.split()[1:] for line in lines if line.startswith("COPY")]
    described = ["pyproject.toml", "setup.py", "README.md", "./"]
    installed = ["--from=build", "/klamm", "/usr/local"]
    assert copied == [described, *([f] * 2 for f in INSTALLED_FOLDERS), installed]
    assert lines[-1] == 'ENTRYPOINT ["klamm"]'


def test_compose_command_serves(tmp_path: Path) -> None:
    """The command line of the container, with a port and a folder of this machine."""
    (service,) = compose()["services"].values()
    folder = service["volumes"][0].partition(":")[2]
    (port,) = free_ports(1)
    options = [
        option.replace("9092", str(port)).replace(folder, str(tmp_path / "data"))
        for option in service["command"]
    ]
    program = [sys.executable, "-m", "klamm.broker"]
    with RunningCommand(program, tmp_path / "data", options):
        assert f"broker 1 at localhost:{port}" in list_brokers(f"127.0.0.1:{port}")


class RunningCommand(KlammProcess):
    """A broker started by a command line that is itself under test."""

    def __init__(
        self, program: Sequence[str], data_dir: Path, options: Sequence[str] | None = None
    ) -> None:
        super().__init__(data_dir)
        default = ["serve", "--listen", "127.0.0.1:0", "--data-dir", str(data_dir)]
        self._command = [*program, *(default if options is None else options)]

    def command(self) -> list[str]:
        return self._command


def list_brokers(bootstrap: str) -> str:
    listed = kcat("-L", "-b", bootstrap)
    assert listed.returncode == 0, listed.stderr
    return listed.stdout.decode()


def write_script(path: Path, body: str) -> None:
    path.write_text(f"#!/bin/bash\n{body}\n", encoding="utf-8")
    path.chmod(0o755)


def run(command: Sequence[str], timeout_s: float = COMMAND_TIMEOUT_S) -> str:
    """Run to the end and return standard output; fail with all that was printed."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    assert done.returncode == 0, (
        f"{command} ended with {done.returncode}\n{done.stdout}{done.stderr}"
    )
    return done.stdout

"""What is in the wheel, and what is in no file of the project."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PACKAGES = ("agent_kit", "agent_kit_sources", "agent_kit_knowledge", "agent_kit_memory")
EXTENSIONS = PACKAGES[1:]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    out = tmp_path_factory.mktemp("wheel")
    command = [
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--outdir",
        str(out),
        str(ROOT),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = out.glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        yield archive


def source(package: str) -> Path:
    return ROOT / package if package == "agent_kit" else ROOT / "extensions" / package


@pytest.mark.parametrize("package", PACKAGES)
def test_every_file_of_every_package_is_in_the_wheel(wheel: zipfile.ZipFile, package: str) -> None:
    folder = source(package)
    files = {
        f"{package}/{path.relative_to(folder).as_posix()}"
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert f"{package}/__init__.py" in files
    assert files == {name for name in wheel.namelist() if name.startswith(f"{package}/")}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_says_that_it_is_typed(wheel: zipfile.ZipFile, package: str) -> None:
    assert f"{package}/py.typed" in wheel.namelist()


@pytest.mark.parametrize("package", EXTENSIONS)
def test_the_plugin_of_every_extension_is_in_the_wheel_with_its_skills_or_commands(
    wheel: zipfile.ZipFile, package: str
) -> None:
    manifest = json.loads(wheel.read(f"{package}/plugin/.claude-plugin/plugin.json"))
    assert manifest["name"] == package.removeprefix("agent_kit_")
    bodies = [
        name
        for name in wheel.namelist()
        if re.match(rf"{package}/plugin/(skills/[^/]+/SKILL|commands/[^/]+)\.md$", name)
    ]
    assert bodies
    for body in bodies:
        assert wheel.read(body).strip()


def test_the_wheel_holds_nothing_else(wheel: zipfile.ZipFile) -> None:
    info = f"agent_kit-{PROJECT['version']}.dist-info"
    assert {name.split("/")[0] for name in wheel.namelist()} == {*PACKAGES, info}
    assert not [
        name for name in wheel.namelist() if name.endswith((".pyc", ".lock")) or "/test_" in name
    ]


def test_the_licence_and_the_command_come_with_it(wheel: zipfile.ZipFile) -> None:
    info = f"agent_kit-{PROJECT['version']}.dist-info"
    assert wheel.read(f"{info}/licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()
    assert "agent-kit = agent_kit.cli:main" in wheel.read(f"{info}/entry_points.txt").decode()
    metadata = Parser().parsestr(wheel.read(f"{info}/METADATA").decode())
    assert (metadata["Name"], metadata["Version"]) == ("agent-kit", PROJECT["version"])
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"


def test_what_is_needed_is_named_with_a_lower_bound() -> None:
    assert PROJECT["dependencies"]
    for line in PROJECT["dependencies"]:
        where = r"(; sys_platform == '[a-z0-9]+')?"
        assert re.fullmatch(rf"[a-z0-9-]+>=\d+(\.\d+)*{where}", line), line


# --- what no file may hold --------------------------------------------------------------------

# In parts, so that this file is none of those it looks for.
REGISTRIES = (
    "pypi" + ".org",
    "pypi.python" + ".org",
    "pythonhosted" + ".org",
    "npmjs" + ".org",
    "npmjs" + ".com",
    "yarnpkg" + ".com",
    "anaconda" + ".org",
    "crates" + ".io",
)
MACHINE = (str(ROOT), "/tmp/" + "w/", "/work/" + "shared/spec", "/work/" + "main")


def project_files() -> list[Path]:
    """Every file that is or would be committed."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [path for name in done.stdout.split("\0") if name and (path := ROOT / name).is_file()]


def test_no_file_names_a_registrys_host_or_a_path_of_this_machine() -> None:
    files = project_files()
    assert ROOT / "pyproject.toml" in files
    found = [
        (str(path.relative_to(ROOT)), word)
        for path in files
        for word in (*REGISTRIES, *MACHINE)
        if word.encode() in path.read_bytes()
    ]
    assert found == []


def test_no_ignored_name_takes_a_plugin_out_of_the_wheel() -> None:
    lines = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    patterns = [line for line in lines if line and not line.startswith("#")]
    assert not [
        line
        for line in patterns
        if "plugin" in line or line.startswith((".claude", "*.json", "*.md"))
    ]

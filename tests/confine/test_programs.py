"""What a named program needs to be seen, and what must not come along with it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent_kit.confine.bubblewrap import Bubblewrap, _tried
from agent_kit.confine.looking import add, look
from agent_kit.confine.programs import find_program, is_the_systems, needed_folders
from agent_kit.confine.view import ConfinedView, Sight
from agent_kit.scope import FileScope
from agent_kit.testing import tree


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path.resolve()


def program(root: Path, path: str) -> tuple[str, str]:
    tree(root, [f"{path}=#!/bin/sh\n"])
    (root / path).chmod(0o755)
    found = find_program(str(root / path), {"PATH": ""})
    assert found is not None
    return found


@pytest.mark.parametrize(
    "path", ["home/.local/bin/uvx", "home/bin/tool", "opt/tool", "srv/tools/bin/tool"]
)
def test_a_program_in_a_folder_of_many_brings_itself_alone(root: Path, path: str) -> None:
    tree(root, ["home/.local/share/keyrings/k=canary", "home/.ssh/id=canary"])
    assert needed_folders([program(root, path)]) == (str(root / path),)


@pytest.mark.parametrize(
    "prefix",
    [
        "home/.pyenv/versions/3.11.7",
        "home/.rustup/toolchains/stable",
        "home/.local/share/uv/python/cpython-3.12.1-linux",
        "opt/node-v20.1.0-linux-x64",
        "home/.nvm/versions/node/v20.1.0",
        "home/.asdf/installs/ruby/3.3.0",
        "home/.asdf/installs/golang/1.21/go",
        "home/.local/share/mise/installs/java/temurin-21",
    ],
)
def test_a_program_of_an_installation_of_its_own_brings_that(root: Path, prefix: str) -> None:
    found = needed_folders([program(root, f"{prefix}/bin/tool")])
    assert found == (str(root / prefix),)


def test_a_program_of_a_virtual_environment_brings_it_and_what_it_was_made_from(root: Path) -> None:
    base = root / "home/.pyenv/versions/3.11.7"
    program(root, "home/.pyenv/versions/3.11.7/bin/python3")
    tree(root, [f"w/.venv/pyvenv.cfg=home = {base}/bin\n"])
    (root / "w/.venv/bin").mkdir()
    (root / "w/.venv/bin/python").symlink_to(base / "bin/python3")
    found = find_program(str(root / "w/.venv/bin/python"), {"PATH": ""})
    assert found is not None
    assert set(needed_folders([found])) == {str(root / "w/.venv"), str(base)}


def test_a_program_of_the_system_brings_nothing() -> None:
    found = find_program("sh", dict(os.environ))
    assert found is not None
    assert needed_folders([found]) == ()
    assert find_program("no-such-program", dict(os.environ)) is None


def test_a_program_of_the_working_folder_is_never_taken(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A project must not choose what runs, were the host's PATH to name the folder it is in."""
    for name in ("pyenv", "python3", "bwrap"):
        program(root, f"w/{name}")
    monkeypatch.chdir(root / "w")
    for path in (".", "", f".{os.pathsep}w", "w"):
        monkeypatch.setenv("PATH", path)
        assert find_program("python3", {"PATH": path}) is None
        assert find_program("./python3", {"PATH": path}) is None
        assert "bwrap can't be found on PATH" in (Bubblewrap().available() or "")


@pytest.mark.parametrize(
    ("manager", "folder"),
    [("pyenv", ".pyenv"), ("asdf", ".asdf"), ("mise", ".local/share/mise"), ("mise", "own")],
)
def test_a_shim_is_followed_to_the_program_that_its_manager_names(
    root: Path, manager: str, folder: str
) -> None:
    """Its own manager is asked first: another one may have a program of that name as well."""
    real = program(root, f"home/{folder}/installs/tool/1.0/bin/tool")
    other = program(root, "home/other/tool")
    program(root, f"home/{folder}/shims/tool")
    names = ("pyenv", "asdf", "mise") if folder != "own" else (manager,)
    for name in names:
        (root / program(root, f"bin/{name}")[0]).write_text(
            f'#!/bin/sh\n[ "$1 $2" = "which tool" ] && echo {(real if name == manager else other)[0]}\n'
        )
    path = f"{root}/home/{folder}/shims{os.pathsep}{root}/bin"
    assert find_program("tool", {"PATH": path}) == real
    assert needed_folders([real]) == (str(root / f"home/{folder}/installs/tool/1.0"),)


def test_a_virtual_environment_in_a_folder_of_the_systems_is_brought(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A project there is covered, and its programs would be with it."""
    monkeypatch.setattr("agent_kit.confine.system.SYSTEM", (str(root / "usr"),))
    tree(root, ["usr/src/app/.venv/pyvenv.cfg=home = /usr/bin\n"])
    own = program(root, "usr/src/app/.venv/bin/tool")
    assert needed_folders([own]) == (str(root / "usr/src/app/.venv"),)
    assert needed_folders([program(root, "usr/local/bin/tool")]) == ()  # a control


@pytest.mark.parametrize("manager", ["exit 1", "echo relative/path", "exec /nowhere"])
def test_a_version_manager_that_fails_leaves_the_shim(root: Path, manager: str) -> None:
    shim = program(root, "home/.pyenv/shims/python3")
    program(root, "home/.pyenv/bin/pyenv")
    (root / "home/.pyenv/bin/pyenv").write_text(f"#!/bin/sh\n{manager}\n")
    path = f"{root}/home/.pyenv/shims{os.pathsep}{root}/home/.pyenv/bin"
    assert find_program("python3", {"PATH": path}) == shim


def test_a_version_manager_that_can_not_be_run_leaves_the_shim(root: Path) -> None:
    shim = program(root, "home/.pyenv/shims/python3")
    program(root, "home/.pyenv/bin/pyenv")
    (root / "home/.pyenv/bin/pyenv").write_bytes(b"\0no program")
    path = f"{root}/home/.pyenv/shims{os.pathsep}{root}/home/.pyenv/bin"
    assert find_program("python3", {"PATH": path}) == shim


def test_what_the_scope_closes_stays_closed_beside_a_program_and_a_settings_file(
    root: Path,
) -> None:
    tree(root, ["opt/app/bin/x=x", "opt/app/secret/key=k", "w/.mcp.json={}", "w/drafts/"])
    scope = FileScope(
        project_dir=str(root / "w"),
        searchable_dirs=["drafts"],
        denied_paths=[".mcp.json", str(root / "opt/app/secret")],
    )
    extra = [str(root / "opt/app"), str(root / "w/.mcp.json")]
    sights = {mount.path: mount.sight for mount in add(scope, look(scope).mounts, extra)}
    assert sights == {
        str(root / "opt/app"): Sight.READ,
        str(root / "opt/app/secret"): Sight.NOTHING,
        str(root / "w/drafts"): Sight.READ,
    }


# --- what is run on the host ------------------------------------------------------------------


def planted(root: Path, path: str) -> str:
    """A program that says on the disk that it ran."""
    tree(root, [f"{path}=#!/bin/sh\ntouch '{root}/ran'\nexit 1\n"])
    (root / path).chmod(0o755)
    return str(root / path)


def test_a_confiner_that_a_session_could_have_written_is_not_run(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs on the host, unconfined: a folder of the workspace may be on PATH."""
    fake = planted(root, "w/node_modules/.bin/bwrap")
    view = ConfinedView(mounts=(), cwd="/", tmp="/tmp")
    monkeypatch.setenv("PATH", os.path.dirname(fake))
    assert "bwrap can't be found on PATH" in (Bubblewrap().available() or "")
    monkeypatch.setattr("agent_kit.confine.programs._USUAL", "/nowhere")
    assert f"{fake} is passed over" in (Bubblewrap().available() or "")
    assert Bubblewrap().launch(view).argv[-1] == "/usr/bin/bwrap"
    monkeypatch.undo()
    monkeypatch.setenv("PATH", os.path.dirname(fake), prepend=os.pathsep)
    assert Bubblewrap().available() is None
    assert not any(word.startswith(str(root)) for word in Bubblewrap().launch(view).argv[-1:])
    assert any(f"{fake} is passed over" in note for note in Bubblewrap().notes(view))
    assert not (root / "ran").exists()
    assert fake in (Bubblewrap(program=fake).available() or "")  # a control
    assert (root / "ran").exists()


def test_the_trial_of_a_confiner_starts_nothing_from_path(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted(root, "w/bin/true")
    monkeypatch.setenv("PATH", f"{root}/w/bin", prepend=os.pathsep)
    _tried.cache_clear()
    assert Bubblewrap().available() is None
    _tried.cache_clear()


@pytest.mark.parametrize(
    ("owner", "mode", "user", "good"),
    [
        (0, 0o755, 1000, True),
        (0, 0o1777, 1000, True),
        (0, 0o775, 1000, False),
        (0, 0o757, 1000, False),
        (1000, 0o755, 1000, False),
        (1001, 0o755, 1000, False),
        (0, 0o755, 0, False),
    ],
)
def test_a_program_is_the_systems_when_nobody_else_can_write_on_its_way(
    root: Path, monkeypatch: pytest.MonkeyPatch, owner: int, mode: int, user: int, good: bool
) -> None:
    path = planted(root, "opt/bin/bwrap")
    real = os.stat

    def stat(each: str, **more: object) -> os.stat_result:
        own = str(each) == f"{root}/opt"
        given = (0o40000 | mode, 1, 1, 1, owner if own else 0, 0, 0, 0, 0, 0)
        fixed = (0o40755, 1, 1, 1, 0, 0, 0, 0, 0, 0)
        real(each, **more)  # type: ignore[arg-type]
        return os.stat_result(given if own else fixed)

    monkeypatch.setattr("agent_kit.confine.programs.os.stat", stat)
    monkeypatch.setattr("os.geteuid", lambda: user)
    monkeypatch.setattr("os.access", lambda *_: user == 0)
    assert is_the_systems(path) is good
    monkeypatch.setattr("os.access", lambda *_: False)  # a read-only file system
    assert is_the_systems(path) is (good or user == 0)
    assert not is_the_systems(f"{root}/opt/bin/gone")


def test_a_version_manager_in_a_writable_folder_is_not_run(root: Path) -> None:
    """Nor one that a manager would run: it is a script, with programs from PATH."""
    shim = program(root, "home/.pyenv/shims/python3")
    planted(root, "w/bin/pyenv")
    planted(root, "w/bin/helper")
    path = f"{root}/w/bin{os.pathsep}{root}/home/.pyenv/shims{os.pathsep}/usr/bin{os.pathsep}/bin"
    assert find_program("python3", {"PATH": path}, [f"{root}/w"]) == shim
    assert not (root / "ran").exists()
    real = program(root, "home/.pyenv/versions/3.11/bin/python3")
    program(root, "home/bin/pyenv")
    (root / "home/bin/pyenv").write_text(f"#!/bin/sh\nhelper\necho {real[0]}\n")
    more = f"{path}{os.pathsep}{root}/home/bin"
    assert find_program("python3", {"PATH": more}, [f"{root}/w"]) == real
    assert not (root / "ran").exists()
    assert find_program("python3", {"PATH": more}) == shim  # a control
    assert (root / "ran").exists()

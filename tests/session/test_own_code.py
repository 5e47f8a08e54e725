"""What runs the agent, now or next time, is written by none of its tools."""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions

from agent_kit import AgentSpec, SessionConfig, check_file_scope, guard_options, plan_session
from agent_kit.session.own_code import _MANY
from agent_kit.session.reading import Reading
from agent_kit.testing import tree

SERVER = {"command": "sh", "args": ["-c", "sleep 1"]}


def in_workspace(world, spec: dict[str, Any], **fields: Any) -> Any:
    env = {"HOME": str(world.home), **fields.pop("env", {})}
    values = {"workspace": world.project, "run_dir": world.run, "confinement": "off", "env": env}
    return plan_session(AgentSpec(name="a", **spec), SessionConfig(**{**values, **fields}))


def written(plan: Any, *names: str) -> list[bool]:
    for name in names:
        assert check_file_scope(plan.scope, "Read", {"file_path": name}) is None, name
    given = ({"file_path": name, "content": "x"} for name in names)
    return [check_file_scope(plan.scope, "Write", each) is None for each in given]


# --- plugins ----------------------------------------------------------------------------------


@pytest.mark.parametrize("brought", ["spec", "extension"])
def test_a_plugin_in_the_workspace_is_read_only_as_a_whole(world, part, brought: str) -> None:
    world.has('project/plug/.claude-plugin/plugin.json={"name": "plug"}', "project/plug2/")
    folder = world.project / "plug"
    spec = {"plugins": ["plug"]} if brought == "spec" else {"extensions": [part(plugin_dir=folder)]}
    plan = in_workspace(world, spec)
    names = ("plug/.claude-plugin/plugin.json", "plug/hooks/hooks.json", "plug/new")
    assert written(plan, *names) == [False] * 3
    assert written(plan, "plug2/new", "new") == [True] * 2
    assert any(f"{folder} is part of what a session is started with" in n for n in plan.notes)


@pytest.mark.parametrize("lacks", [None, "something."])
def test_the_plugin_of_an_extension_that_does_not_run_is_kept_too(world, part, lacks: Any) -> None:
    world.has("project/plug/")
    own = part(plugin_dir=world.project / "plug", lacks=lacks)
    assert written(in_workspace(world, {"extensions": [own]}), "plug/x") == [False]


def test_without_a_workspace_a_writable_folder_with_a_plugin_is_a_fault(world, faults) -> None:
    world.has("project/drafts/plug/inner/")
    spec = {"plugins": ["drafts/plug"]}
    for folder in ("drafts", "drafts/plug", "drafts/plug/inner"):
        found = world.faults(spec=spec, extra_writable_dirs=[folder])
        assert ("extra_writable_dirs", folder) in found
    world.plan(spec=spec, extra_writable_dirs=["sources"])
    whole = faults(lambda: in_workspace(world, {"plugins": ["."]}))
    assert whole == [("workspace", str(world.project))]


# --- servers, the CLI -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "args", "kept"),
    [
        ("sh", ["tools/a.sh"], ["tools/a.sh"]),
        ("sh", ["<here>/tools/a.sh"], ["tools/a.sh"]),
        ("sh", ["--config", "conf.json", "tools/a.sh"], ["conf.json", "tools/a.sh"]),
        ("sh", ["--config=conf.json"], ["conf.json"]),
        ("sh", ["-c", "cd . && exec sh 'tools/a.sh'"], ["tools/a.sh"]),
        ("python3", ["-m", "tools.served"], ["tools/served.py"]),
        ("python3", ["-m", "tools.pack"], ["tools/pack/__main__.py"]),
        ("tools/run", [], ["tools/run"]),
        ("run", ["notes.db"], ["tools/run"]),
        ("sh", ["tools/a.sh", "notes.md", "notes.db", "drafts"], ["tools/a.sh"]),
        ("sh", ["\0", 5], []),
        ("\0", "tools/a.sh", []),
        ("sh", ["notes.db", "a.md"], []),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_a_server_is_started_with_is_read_only(
    world, command: str, args: Any, kept: list[str]
) -> None:
    files = ("a.sh", "served.py", "pack/__main__.py", "run")
    world.has(*(f"project/tools/{name}=x" for name in files))
    world.has("project/conf.json={}", "project/notes.md", "project/notes.db")
    (world.project / "tools/run").chmod(0o755)
    if isinstance(args, list):
        args = [
            each.replace("<here>", str(world.project)) if isinstance(each, str) else each
            for each in args
        ]
    spec = {"mcp_servers": {"s": {"command": command, "args": args}, "made": lambda: {}}}
    path = {"PATH": f"{world.project}/tools:/usr/bin:/bin"}
    plan = in_workspace(world, spec, env=path)
    names = (*(f"tools/{name}" for name in files), "conf.json", "notes.md", "notes.db", "drafts/a")
    assert [name for name, free in zip(names, written(plan, *names), strict=True) if not free] == [
        name for name in names if name in kept
    ]


def test_without_a_workspace_a_servers_script_in_a_writable_folder_is_a_fault(world) -> None:
    world.has("project/drafts/a.sh=x")
    spec = {"mcp_servers": {"s": {"command": "sh", "args": ["drafts/a.sh"]}}}
    found = world.faults(spec=spec, extra_writable_dirs=["drafts"])
    assert found == [("extra_writable_dirs", "drafts")]
    world.plan(spec=spec, extra_writable_dirs=["sources"])


def test_a_cli_in_the_workspace_is_read_only(world, faults) -> None:
    world.has("project/bin/claude=x")
    assert written(in_workspace(world, {}, cli_path="bin/claude"), "bin/claude") == [False]
    assert written(in_workspace(world, {}), "bin/claude") == [True]
    assert world.faults(extra_writable_dirs=["bin"], cli_path="bin/claude") == [
        ("extra_writable_dirs", "bin")
    ]
    (world.project / "other").symlink_to(world.project / "bin/claude")
    assert faults(lambda: in_workspace(world, {}, cli_path="other")) == [("cli_path", "other")]
    (world.root / "link").symlink_to(world.project / "bin")
    in_workspace(world, {}, cli_path=str(world.root / "link/claude"))


@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("mentions", ["scope", "off"])
def test_a_cli_on_path_is_not_taken_from_a_writable_folder(
    world, monkeypatch, mentions: str, linked: bool
) -> None:
    """It would be started on the host."""
    monkeypatch.setattr("agent_kit.session.options.bundled_cli", lambda: None)
    tree(world.root, ["project/drafts/claude=#!/bin/sh", "elsewhere/claude=#!/bin/sh"])
    for folder in ("project/drafts", "elsewhere"):
        (world.root / folder / "claude").chmod(0o755)
    first = world.project / "drafts"
    if linked:
        first = world.root / "bin"
        first.mkdir()
        (first / "claude").symlink_to(world.project / "drafts/claude")
    monkeypatch.setenv("PATH", str(first))
    fields = {"extra_writable_dirs": ["drafts"], "prompt_mentions": mentions}
    with pytest.raises(Exception, match=r"cli_path=.*claude.*the session may write"):
        world.options(**fields)
    monkeypatch.setenv("PATH", f"{first}:{world.root}/elsewhere")
    text = str(world.options(**fields).cli_path)
    if mentions == "scope":
        text = Path(text).read_text()
    assert f"{world.root}/elsewhere/claude" in text
    assert "drafts/claude" not in text
    monkeypatch.setenv("PATH", "/nowhere")
    assert world.options(**fields).cli_path is None  # the SDK says so


# --- files of options -------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["settings", "mcp_servers", "system_prompt"])
def test_a_file_that_options_are_in_is_read_only(world, option: str) -> None:
    world.has(
        'project/conf/a={"mcpServers": {}}' if option == "mcp_servers" else "project/conf/a={}"
    )
    file = str(world.project / "conf/a")
    value = {"type": "file", "path": file} if option == "system_prompt" else file
    given = ClaudeAgentOptions(**{option: value})
    env = {"HOME": str(world.home)}
    fields = {"run_dir": world.run, "env": env, "confinement": "off"}
    config = SessionConfig(workspace=world.project, **fields)
    spec = Reading(given, config).spec()
    assert spec is not None
    plan = plan_session(spec, config)
    assert written(plan, "conf/a", "conf/b") == [False, True]
    guard_options(given, config)
    long = SessionConfig(project_dir=world.project, extra_writable_dirs=["conf"], **fields)
    with pytest.raises(Exception, match="it holds what the options were read from"):
        guard_options(given, long)


# --- loaded modules ---------------------------------------------------------------------------


def loaded(monkeypatch: pytest.MonkeyPatch, name: str, file: object) -> None:
    module = types.ModuleType(name)
    module.__file__ = file  # type: ignore[assignment]
    monkeypatch.setitem(sys.modules, name, module)


def test_a_module_that_is_loaded_from_the_workspace_is_read_only(world, monkeypatch) -> None:
    """The next run of the program loads it again, and its bytecode in its place."""
    world.has("project/lib/__pycache__/", "project/lib/a.py=x", "out/b.py=x", "out/c.py=x")
    (world.project / "lib/b.py").symlink_to(world.root / "out/b.py")
    (world.root / "out/d.py").symlink_to(world.project / "lib/d.py")
    loaded(monkeypatch, "mine_a", str(world.project / "lib/a.py"))
    loaded(monkeypatch, "mine_c", str(world.root / "out/c.py"))
    loaded(monkeypatch, "mine_d", str(world.root / "out/d.py"))
    loaded(monkeypatch, "mine_e", 5)
    monkeypatch.setitem(sys.modules, "mine_f", 5)
    plan = in_workspace(world, {})
    names = ("lib/a.py", "lib/d.py", "lib/__pycache__/a.pyc", "lib/new.py")
    assert written(plan, *names) == [False, False, False, True]
    assert any("lib/a.py is part of the program" in note for note in plan.notes)
    assert world.faults(extra_writable_dirs=["lib"]) == [("extra_writable_dirs", "lib")] * 3


def test_a_module_that_waits_to_be_loaded_is_left_alone(world, monkeypatch) -> None:
    class Lazy(types.ModuleType):
        def __getattribute__(self, name: str) -> Any:
            raise AssertionError(name)

    monkeypatch.setitem(sys.modules, "mine_lazy", Lazy("mine_lazy"))
    in_workspace(world, {})


@pytest.mark.parametrize("packaged", [True, False])
def test_of_many_loaded_modules_the_folder_is_read_only(world, monkeypatch, packaged: bool) -> None:
    """Each of them would be a rule and a mount; the workspace itself stays writable."""
    files = [f"lib/deep/m{at}.py" for at in range(_MANY + 1)]
    world.has(*(f"project/{file}=x" for file in files), "project/lib/__init__.py=")
    world.has(*(f"project/m{at}.py=x" for at in range(_MANY + 1)))
    if packaged:
        loaded(monkeypatch, "mine", str(world.project / "lib/__init__.py"))
    for at, file in enumerate(files):
        loaded(monkeypatch, f"mine.m{at}", str(world.project / file))
        loaded(monkeypatch, f"other_m{at}", str(world.project / f"m{at}.py"))
    plan = in_workspace(world, {})
    names = ("lib/deep/new.py", "lib/new.py", "m0.py", "new.py")
    assert written(plan, *names) == [False, not packaged, False, True]
    assert len([note for note in plan.notes if "part of" in note]) == 10
    assert any("more are read-only like these" in note for note in plan.notes)


def test_a_folder_of_bytecode_in_the_workspace_is_read_only(world, monkeypatch) -> None:
    monkeypatch.setattr(sys, "pycache_prefix", str(world.project / "cache"))
    assert written(in_workspace(world, {}), "cache/a.pyc", "b") == [False, True]


# --- the sign-in ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("manifest", "refused"),
    [
        ({"mcpServers": {"x": SERVER}}, True),
        ({"mcpServers": "./servers.json"}, True),
        ({"mcpServers": {"x": {"type": "http", "url": "http://127.0.0.1"}}}, False),
        ({}, False),
    ],
    ids=["a program", "another file", "elsewhere", "none"],
)
def test_a_plugin_that_starts_programs_does_not_come_near_a_sign_in(
    world, manifest: dict[str, Any], refused: bool
) -> None:
    """As a tool that runs commands doesn't, whatever would be done without a confinement."""
    held = json.dumps({"name": "plug", **manifest})
    world.has(f"plug/.claude-plugin/plugin.json={held}", "home/.claude/.credentials.json={}")
    spec = {"plugins": [str(world.root / "plug")]}
    for confinement in ("auto", "required"):
        if refused:
            with pytest.raises(Exception, match=r"plugin\.json can run commands.*expose_account"):
                world.plan(spec=spec, confinement=confinement)
        else:
            assert world.plan(spec=spec, confinement=confinement).confinement.account
    plan = world.plan(spec=spec, confinement="auto", allow_unconfined_commands=True)
    assert plan.locks["kernel"].on is not refused
    for free in (
        {"expose_account": True},
        {"strict_mcp_config": True},
        {"env": {"ANTHROPIC_API_KEY": "sk-1"}},
    ):
        assert world.plan(spec=spec, confinement="required", **free).confinement
    (world.home / ".claude/.credentials.json").unlink()
    assert world.plan(spec=spec, confinement="required").confinement  # there is none


def test_servers_that_can_not_be_read_count_as_programs(world) -> None:
    world.has("home/.claude/.credentials.json={}", "plug/")
    for text in ("{", "[]", '{"mcpServers": []}', "5"):
        (world.root / "plug/.mcp.json").write_text(text)
        with pytest.raises(Exception, match=r"mcp\.json can run commands"):
            world.plan(spec={"plugins": [str(world.root / "plug")]}, confinement="required")

"""What only the disk can tell: missing folders, files, circles, roles that contradict, holes."""

from __future__ import annotations

import os
import shlex
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

import agent_kit
from agent_kit import (
    AgentSpec,
    ConfigError,
    Contribution,
    SessionConfig,
    ToolOnlyDir,
    check_file_scope,
    plan_session,
)

# --- missing, files, circles ------------------------------------------------------------------


@pytest.mark.parametrize("field", ["extra_writable_dirs", "extra_readable_dirs"])
@pytest.mark.parametrize(
    "folder",
    [
        "missing",
        "missing/deeper",
        "file.txt",
        "file.txt/x",
        "loop",
        "loop/x",
        "dangling",
        "~/missing",
        "../missing",
    ],
)
def test_a_folder_that_is_none_is_a_fault(world, field: str, folder: str) -> None:
    world.has("project/loop => loop2", "project/loop2 => loop", "project/dangling => gone")
    assert world.faults(**{field: ["drafts", folder]}) == [(field, folder)]


def test_a_plugin_that_is_no_folder_is_a_fault(world) -> None:
    assert world.faults(spec={"plugins": ["missing", "file.txt", "drafts"]}) == [
        ("plugins", "missing"),
        ("plugins", "file.txt"),
    ]


@pytest.mark.parametrize("folder", ["missing", "file.txt", "file.txt/x", "~nobody/x"])
def test_a_missing_project_says_what_the_path_means(world, folder: str, monkeypatch) -> None:
    monkeypatch.chdir(world.project)
    ((field, value),) = world.faults(project_dir=folder)
    assert (field, value) == ("project_dir", folder)
    with pytest.raises(ValueError, match=str(world.project / folder)):
        world.plan(project_dir=folder)


@pytest.mark.parametrize("field", ["run_dir", "config_dir"])
def test_a_folder_that_will_be_made_may_be_missing_but_no_file_and_no_circle(
    world, field: str
) -> None:
    world.has("project/loop => loop2", "project/loop2 => loop", "project/dangling => gone")
    for bad in ("file.txt", "loop", "dangling"):
        assert world.faults(**{field: bad}) == [(field, bad)]
    world.plan(**{field: "new/deeper"})


def started(options: Any) -> str:
    """The program that the session's launcher becomes."""
    words = shlex.split(Path(options.cli_path).read_text().splitlines()[1])
    return words[8 + int(words[7])]  # after the slash commands that may run, and their number


def test_a_cli_that_is_not_there_is_a_fault(world) -> None:
    assert world.faults(cli_path="bin/claude") == [("cli_path", "bin/claude")]
    world.has("project/bin/claude=x")
    assert started(world.options(cli_path="bin/claude")) == str(world.project / "bin/claude")


@pytest.mark.parametrize("role", ["read_only_dirs", "readable_dirs", "writable_dirs"])
def test_an_extensions_folder_that_is_a_file_or_a_circle_is_its_fault(
    world, part, role: str
) -> None:
    world.has("project/loop => loop2", "project/loop2 => loop")
    for bad in ("file.txt", "loop"):
        assert world.faults(spec={"extensions": [part(**{role: (bad,)})]}) == [
            (f"part.{role}", bad)
        ]
    world.plan(spec={"extensions": [part(**{role: ("not-yet",)})]})


def test_every_fault_of_the_disk_comes_at_once(world) -> None:
    found = world.faults(
        extra_writable_dirs=["missing", "drafts"],
        extra_readable_dirs=["file.txt"],
        run_dir="file.txt",
        cli_path="nope",
        env={"CLAUDE_CONFIG_DIR": ""},
        unlock=["hooks"],
        settings={"model": 5, "permissions": {"deny": "x"}},
        spec={"plugins": ["gone"], "options": {"settings": {"model": 6}}},
    )
    assert [field for field, _ in found] == [
        "extra_writable_dirs",
        "extra_readable_dirs",
        "plugins",
        "run_dir",
        "cli_path",
        "env",
        "unlock",
        "options['settings']['model']",
        "settings['model']",
        "settings['permissions']['deny']",
    ]


def test_faults_of_roles_names_and_patterns_come_at_once(world, part) -> None:
    extensions = [
        part(name="one", read_only_dirs=("sources",), mcp_servers={"kb": {}}),
        part(name="two", writable_dirs=("sources/in",), mcp_servers={"kb": {}}),
    ]
    found = world.faults(
        spec={"extensions": extensions},
        extra_writable_dirs=["sources"],
        denied_paths=["..", "#x*"],
        mcp_file_tools={"x": {}},
    )
    assert sorted(field for field, _ in found) == [
        "denied_paths",
        "denied_paths",
        "extra_writable_dirs",
        "mcp_file_tools",
        "mcp_servers",
        "two.writable_dirs",
    ]


# --- roles ------------------------------------------------------------------------------------

only = ToolOnlyDir(dir="knowledge", instead="its tools")


@pytest.mark.parametrize(
    "inside",
    [
        "knowledge",
        "knowledge/in",
        "./knowledge/",
        "KNOWLEDGE",
        "link",
        "link/in",
        "~/../project/knowledge",
    ],
)
@pytest.mark.parametrize("field", ["extra_writable_dirs", "extra_readable_dirs"])
def test_a_folder_inside_a_tools_only_one_means_nothing(
    world, part, field: str, inside: str
) -> None:
    world.has("project/knowledge/in/", "project/link => knowledge")
    (world.project / "KNOWLEDGE").mkdir(exist_ok=True)
    found = world.faults(spec={"extensions": [part(tool_only_dirs=(only,))]}, **{field: [inside]})
    assert found == [(field, inside)]


@pytest.mark.parametrize("role", ["read_only_dirs", "readable_dirs", "writable_dirs"])
def test_one_extension_can_not_contradict_itself(world, part, role: str) -> None:
    world.has("project/knowledge/in/")
    for folder in ("knowledge", "knowledge/in"):
        extension = part(tool_only_dirs=(only,), **{role: (folder,)})
        assert world.faults(spec={"extensions": [extension]}) == [(f"part.{role}", folder)]
    extension = part(read_only_dirs=("sources",), writable_dirs=("sources",))
    assert world.faults(spec={"extensions": [extension]}) == [("part.writable_dirs", "sources")]


@pytest.mark.parametrize("inside", ["sources", "sources/in", "link"])
def test_a_writable_folder_inside_originals_means_nothing(world, part, inside: str) -> None:
    world.has("project/sources/in/", "project/link => sources")
    extension = part(read_only_dirs=("sources",))
    assert world.faults(spec={"extensions": [extension]}, extra_writable_dirs=[inside]) == [
        ("extra_writable_dirs", inside)
    ]
    world.plan(spec={"extensions": [extension]}, extra_readable_dirs=[inside])


def test_a_closed_folder_inside_an_open_one_is_what_folders_are_for(world, part) -> None:
    world.has("project/knowledge/")
    extension = part(read_only_dirs=("sources",), tool_only_dirs=(only,))
    plan = world.plan(
        spec={"extensions": [extension]}, extra_writable_dirs=["."], denied_paths=["drafts"]
    )
    for closed in ("sources/x", "knowledge/x", "drafts/x"):
        assert check_file_scope(plan.scope, "Write", {"file_path": closed}) is not None
    assert check_file_scope(plan.scope, "Write", {"file_path": "x"}) is None


def contributions(folder: str) -> dict[str, Any]:
    return {
        "read_only": {"read_only_dirs": (folder,)},
        "readable": {"readable_dirs": (folder,)},
        "writable": {"writable_dirs": (folder,)},
        "tool_only": {"tool_only_dirs": (ToolOnlyDir(dir=folder, instead="tools"),)},
    }


@pytest.mark.parametrize("one", contributions("x"))
@pytest.mark.parametrize("other", contributions("x"))
@pytest.mark.parametrize("folders", [("x", "x"), ("x", "x/in"), ("x/in", "x"), ("link", "x")])
def test_two_extensions_folders_may_only_overlap_in_one_role(
    world, part, one: str, other: str, folders: tuple[str, str]
) -> None:
    world.has("project/x/in/", "project/link => x")
    extensions = [
        part(name="one", **contributions(folders[0])[one]),
        part(name="two", **contributions(folders[1])[other]),
    ]
    if one == other != "tool_only":
        world.plan(spec={"extensions": extensions})
        return
    ((field, value),) = world.faults(spec={"extensions": extensions})
    assert field in (f"one.{one}_dirs", f"two.{other}_dirs")
    assert value in folders


def test_one_extension_may_open_a_folder_further_inside(world, part) -> None:
    world.has("project/sources/in/")
    extension = part(readable_dirs=("sources",), writable_dirs=("sources/in",))
    plan = world.plan(spec={"extensions": [extension]})
    assert check_file_scope(plan.scope, "Write", {"file_path": "sources/in/x"}) is None
    assert check_file_scope(plan.scope, "Write", {"file_path": "sources/x"}) is not None


def test_one_extension_may_deny_something_in_anothers_folder(world, part) -> None:
    extensions = [
        part(name="one", read_only_dirs=("sources",)),
        part(name="two", denied_paths=("sources/secret", "file.txt", "sources")),
    ]
    plan = world.plan(spec={"extensions": extensions})
    assert check_file_scope(plan.scope, "Read", {"file_path": "sources/x"}) is not None


# --- closed folders that hold too much --------------------------------------------------------


@pytest.mark.parametrize(
    "denied",
    [
        ".",
        "<root>/run",
        "../RUN",
        "<root>",
        "/",
        "../project",
        "..",
        "<home>/../project",
        "link",
        "<root>/PROJECT",
    ],
)
def test_a_denied_path_that_holds_the_project_or_the_run_folder_is_a_fault(
    world, denied: str
) -> None:
    world.has("project/link => ../../" + world.root.name)
    (world.root / "PROJECT").mkdir()
    given = denied.replace("<root>", str(world.root)).replace("<home>", str(world.home))
    found = world.faults(denied_paths=["secret", given])
    assert set(found) == {("denied_paths", given)}


@pytest.mark.parametrize(
    "pattern",
    ["*", "**", "/**", "**/*", "<root>/*", "proj*", "PROJ*", "r?n", "**/project", "{a,project,b*}"],
)
def test_a_denied_pattern_that_matches_the_project_or_the_run_folder_is_a_fault(
    world, pattern: str
) -> None:
    given = pattern.replace("<root>", str(world.root))
    assert set(world.faults(denied_paths=["secret*", given])) == {("denied_paths", given)}


def test_an_escaped_name_is_the_folder_of_that_name(world, part) -> None:
    world.has("a[1]/inside/drafts/", "a\\[1\\]/")
    project = world.root / "a[1]" / "inside"
    given = str(world.root / "a\\[1\\]")
    assert world.faults(project_dir=project, denied_paths=[given]) == [("denied_paths", given)]
    folder = str(world.root / "a\\[1\\]")  # in every other field a backslash is a backslash
    world.plan(project_dir=project, extra_writable_dirs=[folder])


def test_an_extension_can_not_close_them_either(world, part) -> None:
    assert world.faults(spec={"extensions": [part(denied_paths=(".",))]}) == [
        ("part.denied_paths", ".")
    ]
    whole = ToolOnlyDir(dir="..", instead="tools")
    found = world.faults(spec={"extensions": [part(tool_only_dirs=(whole,))]})
    assert set(found) == {("part.tool_only_dirs", "..")}


def test_what_lies_in_the_project_may_be_denied(world) -> None:
    world.plan(
        denied_paths=[
            "drafts",
            "*.md",
            "**/.env",
            "projector",
            str(world.root / "runner"),
            "~/.ssh",
            "/etc",
        ]
    )


# --- writable folders that would open a lock --------------------------------------------------


KIT = Path(agent_kit.__file__).parent
STDLIB = sysconfig.get_path("stdlib")
# A folder, and what the fault says of it.
HOLDERS = {
    "<root>": "holds the run folder",
    "<root>/run": "holds the run folder",
    "<root>/home": "holds the CLI's config folder",
    "<root>/home/.claude": "lies in the CLI's config folder",
    "<root>/home/.claude/skills": "lies in the CLI's config folder",
    str(KIT.parent): "holds agent-kit itself",
    str(KIT): "lies in agent-kit itself",
    str(KIT / "scope"): "lies in agent-kit itself",
    sys.prefix: "holds the Python interpreter",
    sys.base_prefix: "holds the Python that its environment stands on",
    sysconfig.get_path("purelib"): "lies in the Python library",
    STDLIB: "lies in the Python library",
    f"{STDLIB}/asyncio": "lies in the Python library",
    str(Path(__file__).parent): "holds the module that defines the spec",
    "/": "holds the Python interpreter",
}


@pytest.mark.parametrize(("folder", "says"), HOLDERS.items(), ids=HOLDERS.values())
@pytest.mark.parametrize("linked", [False, True])
def test_a_writable_folder_that_would_let_the_agent_open_its_locks_is_a_fault(
    world, part, folder: str, says: str, linked: bool
) -> None:
    world.has("home/.claude/skills/", "run/")
    folder = target = folder.replace("<root>", str(world.root))
    if linked:
        (world.project / "way").symlink_to(folder)
        folder = "way"
    spec = AgentSpec(name="a")  # defined in this file
    config = world.config(extra_writable_dirs=["drafts", folder])
    with pytest.raises(ConfigError, match="could open its locks") as caught:
        plan_session(spec, config)
    assert {(f.field, f.value) for f in caught.value.faults} == {("extra_writable_dirs", folder)}
    assert [f.remedy for f in caught.value.faults if says in f.remedy]
    world.plan(spec={"name": "a"}, extra_readable_dirs=[target])
    extension = part(writable_dirs=(folder,))
    with pytest.raises(ConfigError, match="could open its locks") as caught:
        plan_session(AgentSpec(name="a", extensions=[extension]), world.config())
    assert {(f.field, f.value) for f in caught.value.faults} == {("part.writable_dirs", folder)}


def test_a_separate_config_folder_is_protected_too(world) -> None:
    world.has("project/drafts/cfg/")
    for fields in (
        {"config_dir": "drafts/cfg"},
        {"env": {"CLAUDE_CONFIG_DIR": str(world.project / "drafts/cfg")}},
    ):
        assert world.faults(extra_writable_dirs=["drafts"], **fields) == [
            ("extra_writable_dirs", "drafts")
        ]


# --- the run folder ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "run_dir", [".", "..", "<root>", "<home>", "~", "/", "<home>/.claude", "link"]
)
def test_a_run_folder_that_holds_something_else_would_make_that_readable(
    world, run_dir: str
) -> None:
    world.has("home/.claude/", "project/link => ../home")
    given = run_dir.replace("<root>", str(world.root)).replace("<home>", str(world.home))
    assert world.faults(run_dir=given) == [("run_dir", given)]


def test_a_run_folder_is_not_the_home_either_when_the_config_folder_is_elsewhere(world) -> None:
    assert world.faults(run_dir="~", config_dir="../cfg") == [("run_dir", "~")]


def test_the_run_folder_is_readable_but_for_the_hosts_part(world) -> None:
    plan = world.plan(extra_writable_dirs=["drafts"])
    for tool in ("Read", "Glob"):
        field = {"Read": "file_path", "Glob": "path"}[tool]
        assert (
            check_file_scope(plan.scope, tool, {field: str(world.run / "x"), "pattern": "*"})
            is None
        )
        for closed in ("host", "host/settings.json", "HOST/x"):
            assert (
                check_file_scope(plan.scope, tool, {field: str(world.run / closed), "pattern": "*"})
                is not None
            )
    assert check_file_scope(plan.scope, "Write", {"file_path": str(world.run / "x")}) is not None
    assert (
        check_file_scope(plan.scope, "Grep", {"path": str(world.run), "pattern": "x"}) is not None
    )


# --- what paths are relative to ---------------------------------------------------------------


def test_a_project_is_relative_to_the_process_and_everything_else_to_the_project(
    world, monkeypatch
) -> None:
    monkeypatch.chdir(world.root)
    world.has("project/plugin/", "project/bin/claude=x")
    plan = world.plan(
        project_dir="project",
        extra_writable_dirs=["drafts"],
        run_dir="../run",
        config_dir="../cfg",
        spec={"plugins": ["plugin"]},
    )
    assert plan.project_dir == world.project
    assert plan.run_dir == world.run
    assert plan.plugins == (world.project / "plugin",)
    assert (
        check_file_scope(plan.scope, "Write", {"file_path": str(world.project / "drafts/x")})
        is None
    )
    options = world.options(project_dir="project", config_dir="../cfg", cli_path="bin/claude")
    assert options.env["CLAUDE_CONFIG_DIR"] == str(world.root / "cfg")
    assert started(options) == str(world.project / "bin/claude")


def test_a_tilde_is_the_clis_home_in_every_field_that_is_a_path(world) -> None:
    world.has("home/w/", "home/r/", "home/p/", "home/bin/claude=x", "home/course/drafts/")
    plan = world.plan(
        project_dir="~/course",
        extra_writable_dirs=["~/w"],
        extra_readable_dirs=["~/r"],
        denied_paths=["~/w/secret", "~/r/*.key"],
        run_dir="~/runs",
        config_dir="~/cfg",
        cli_path="~/bin/claude",
        spec={"plugins": ["~/p"]},
    )
    assert plan.project_dir == world.home / "course"
    assert plan.run_dir == world.home / "runs"
    assert plan.plugins == (world.home / "p",)
    assert check_file_scope(plan.scope, "Write", {"file_path": "~/w/x"}) is None
    assert (
        check_file_scope(plan.scope, "Write", {"file_path": str(world.home / "w/secret")})
        is not None
    )
    assert (
        check_file_scope(plan.scope, "Read", {"file_path": str(world.home / "r/a.key")}) is not None
    )
    assert (plan.scope.tool_results_dir or "").startswith(str(world.home / "cfg"))


def test_a_name_after_a_tilde_is_a_name_like_any_other(world) -> None:
    world.has("project/~nobody/x/")
    plan = world.plan(extra_writable_dirs=["~nobody/x"])
    assert (
        check_file_scope(plan.scope, "Write", {"file_path": str(world.project / "~nobody/x/a")})
        is None
    )


@pytest.mark.parametrize("home", ["", "relative/home", "~"])
def test_a_home_that_is_not_absolute_is_a_fault(world, home: str) -> None:
    assert world.faults(env={"HOME": home}) == [("env", {"HOME": home})]


def test_an_empty_config_folder_would_be_the_project_and_is_a_fault(world, monkeypatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "")
    assert world.faults() == [("env", {"CLAUDE_CONFIG_DIR": ""})]
    world.plan(config_dir="../cfg")


def test_a_relative_config_folder_is_the_clis_below_the_project(world, monkeypatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "cfg")
    plan = world.plan(extra_readable_dirs=["."])
    assert (plan.scope.tool_results_dir or "").startswith(str(world.project / "cfg"))
    closed = {"file_path": str(world.project / "cfg" / ".credentials.json")}
    assert check_file_scope(plan.scope, "Read", closed) is not None


def test_the_default_run_folder_is_the_agents_in_the_platforms_state_folder(world) -> None:
    plan = plan_session(
        AgentSpec(name="course-assistant"), SessionConfig(project_dir=world.project)
    )
    assert (
        plan.run_dir
        == world.root / "state" / "agent-kit" / "course-assistant" / "runs" / plan.session_id
    )
    assert plan.host_dir == plan.run_dir / "host"
    assert not plan.run_dir.exists()  # planning makes nothing


def test_planning_leaves_the_disk_as_it_is(world) -> None:
    before = sorted(world.root.rglob("*"))
    world.plan(extra_writable_dirs=["drafts"], config_dir="../cfg")
    assert sorted(world.root.rglob("*")) == before


def test_a_link_to_a_project_is_the_project(world) -> None:
    world.has("link => project")
    plan = plan_session(
        AgentSpec(name="a"),
        SessionConfig(
            project_dir=world.root / "link", extra_writable_dirs=["drafts"], run_dir=str(world.run)
        ),
    )
    for name in ("link", "project"):
        assert (
            check_file_scope(
                plan.scope, "Write", {"file_path": str(world.root / name / "drafts/x")}
            )
            is None
        )
    real = os.path.realpath(world.project).replace("/", "-").replace("_", "-")
    assert f"/{real}/" in (plan.scope.tool_results_dir or "")


def test_a_contribution_may_name_nothing(world, part) -> None:
    assert world.plan(spec={"extensions": [part(brings=Contribution())]}).extensions


@pytest.mark.parametrize("role", ["extra_readable_dirs", "extra_writable_dirs"])
def test_a_folder_that_the_project_leads_out_of_itself_is_a_fault(world, part, role: str) -> None:
    """A prepared project could name any folder by such a link."""
    world.has("elsewhere/", "project/inner/")
    (world.project / "out").symlink_to(world.root / "elsewhere")
    (world.project / "in").symlink_to(world.project / "inner")
    for text in ("out", str(world.project / "out"), "./out/."):
        with pytest.raises(ConfigError, match="leads from it out of the project") as caught:
            world.plan(**{role: [text]})
        assert str(world.root / "elsewhere") in str(caught.value)
    with pytest.raises(ConfigError, match=r"part\.tool_only_dirs.*leads from it out"):
        plan_session(
            AgentSpec(
                name="a", extensions=[part(tool_only_dirs=(ToolOnlyDir(dir="out", instead="t"),))]
            ),
            world.config(),
        )
    world.plan(**{role: ["in"]})
    world.plan(**{role: [str(world.root / "elsewhere")]})

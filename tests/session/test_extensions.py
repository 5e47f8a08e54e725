"""The contract with extensions: who runs, what they bring, and what is wrong with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_kit import (
    AgentSpec,
    Contribution,
    Extension,
    ExtensionContext,
    ToolOnlyDir,
    build_session_options,
    check_file_scope,
    plan_session,
)

# --- who runs ---------------------------------------------------------------------------------


def test_an_extension_that_can_not_run_is_inactive_with_its_reason_in_plan_and_prompt(
    world, part
) -> None:
    lame = part(
        name="lame",
        lacks="there is no database.",
        writable_dirs=("drafts",),
        prompt_section="# Lame",
    )
    plan = world.plan(spec={"extensions": [part(), lame], "system_prompt": "You help."})
    assert plan.inactive == {"lame": "there is no database."}
    assert [extension.name for extension in plan.extensions] == ["part"]
    assert lame.asked == []
    assert "- lame: there is no database." in plan.system_prompt
    assert "# Lame" not in plan.system_prompt
    assert check_file_scope(plan.scope, "Write", {"file_path": "drafts/x"}) is not None


def test_a_plugin_of_an_inactive_extension_is_not_loaded(world, part) -> None:
    world.has("plugin/skills/s/SKILL.md=x")
    folder = world.root / "plugin"
    lame = part(lacks="no.", plugin_dir=folder)
    assert world.plan(spec={"extensions": [lame]}).plugins == ()
    assert world.plan(spec={"extensions": [part(plugin_dir=folder)]}).plugins == (folder,)


def chain(part: Any, order: str, **last: Any) -> list[Any]:
    """a needs what b provides, which needs what c provides."""
    made = {
        "a": part(name="a", requires=("b",)),
        "b": part(name="b", requires=("c",), provides=("b",)),
        "c": part(name="c", provides=("c",), **last),
    }
    return [made[name] for name in order]


@pytest.mark.parametrize("order", ["abc", "cba", "bca", "acb"])
def test_requirements_are_resolved_until_nothing_changes_in_any_order(
    world, part, order: str
) -> None:
    whole = world.plan(spec={"extensions": chain(part, order)})
    assert [extension.name for extension in whole.extensions] == list(order)
    broken = world.plan(spec={"extensions": chain(part, order, lacks="no.")})
    assert broken.extensions == ()
    assert broken.inactive["c"] == "no."
    assert "needs c" in broken.inactive["b"]
    assert "needs b" in broken.inactive["a"]


def test_a_missing_requirement_is_named(world, part) -> None:
    plan = world.plan(
        spec={
            "extensions": [
                part(requires=("x", "y"), provides=("z",)),
                part(name="two", provides=("x",)),
            ]
        }
    )
    assert plan.inactive == {"part": "it needs y, which no active extension provides."}


def test_two_that_need_each_other_run_together(world, part) -> None:
    pair = [
        part(name="a", requires=("b",), provides=("a",)),
        part(name="b", requires=("a",), provides=("b",)),
    ]
    assert len(world.plan(spec={"extensions": pair}).extensions) == 2


def test_the_context_holds_what_the_contract_says(world, part) -> None:
    seen: list[ExtensionContext] = []
    extension = part(provides=("p",), lacks=lambda context: seen.append(context))
    spec, config = (
        AgentSpec(
            name="a", extensions=[extension, part(name="lame", lacks="no.", provides=("gone",))]
        ),
        world.config(),
    )
    plan = plan_session(spec, config)
    for context in (seen[-1], *extension.asked):
        assert (context.spec, context.config, context.mode) == (spec, config, "guided")
        assert (context.project_dir, context.run_dir) == (world.project, plan.run_dir)
        assert context.capabilities == {"p"}
    assert len(extension.asked) == 1


# --- what is wrong with them ------------------------------------------------------------------


def test_two_extensions_of_one_name_are_a_fault(world, part) -> None:
    assert world.faults(spec={"extensions": [part(), part(), part(name="other")]}) == [
        ("extensions", "part")
    ]


@pytest.mark.parametrize("kind", ["spec and extension", "two extensions"])
def test_two_servers_of_one_name_are_a_fault_and_none_is_overwritten(
    world, part, kind: str
) -> None:
    own = {"mcp_servers": {"kb": {"type": "stdio"}}} if kind == "spec and extension" else {}
    extensions = [
        part(mcp_servers={"kb": {}}),
        part(name="two", mcp_servers={"other": {}} if own else {"kb": {}}),
    ]
    assert world.faults(spec={"extensions": extensions, **own}) == [("mcp_servers", "kb")]


TEXT_LISTS = (
    "read_only_dirs",
    "readable_dirs",
    "writable_dirs",
    "denied_paths",
    "file_tools",
    "read_only_tools",
)


@pytest.mark.parametrize("field", TEXT_LISTS)
def test_a_text_where_a_tuple_belongs_is_not_read_letter_by_letter(world, part, field: str) -> None:
    # ("/srv" would open "/", "s", "r" and "v".)
    assert (f"part.{field}", "/srv") in world.faults(spec={"extensions": [part(**{field: "/srv"})]})


@pytest.mark.parametrize("field", TEXT_LISTS)
@pytest.mark.parametrize("item", [5, None, "", Path("x")], ids=repr)
def test_an_item_that_is_no_text_is_a_fault(world, part, field: str, item: Any) -> None:
    assert (f"part.{field}", item) in world.faults(spec={"extensions": [part(**{field: (item,)})]})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("tool_only_dirs", "knowledge"),
        ("tool_only_dirs", ("knowledge",)),
        ("tool_only_dirs", ToolOnlyDir(dir="x", instead="y")),
        ("prompt_section", 5),
        ("mcp_servers", []),
        ("mcp_servers", "x"),
        ("hooks", []),
        ("interrupt_on", []),
        ("interrupt_on", "mcp__kb__write"),
        ("file_tools", ("default",)),
        ("file_tools", ("Read(//x)",)),
    ],
    ids=repr,
)
def test_a_contribution_of_a_wrong_shape_is_a_fault_of_its_extension(
    world, part, field: str, value: Any
) -> None:
    found = world.faults(spec={"extensions": [part(**{field: value})]})
    assert [name for name, _ in found] == [f"part.{field}"]


@pytest.mark.parametrize("server", ["x", None, 5, ["x"]], ids=repr)
def test_a_server_is_a_configuration_or_makes_one(world, part, server: Any) -> None:
    extension = part(mcp_servers={"kb": server, "other": {}, "made": dict})
    assert world.faults(spec={"extensions": [extension]}) == [("part.mcp_servers['kb']", server)]


@pytest.mark.parametrize("brings", [None, {}, "x", Contribution], ids=repr)
def test_what_is_no_contribution_is_a_fault(world, part, brings: Any) -> None:
    ((field, _),) = world.faults(spec={"extensions": [part(brings=lambda _: brings)]})
    assert field == "part.contribute"


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"name": "a b"}, ("extensions", "a b")),
        ({"name": ""}, ("extensions", "")),
        ({"name": "a" * 65}, ("extensions", "a" * 65)),
        ({"provides": "notes"}, ("part.provides", "notes")),
        ({"requires": "notes"}, ("part.requires", "notes")),
        ({"provides": (5,)}, ("part.provides", 5)),
        ({"plugin_dir": Path("/nowhere")}, ("part.plugin_dir", Path("/nowhere"))),
        ({"plugin_dir": 5}, ("part.plugin_dir", 5)),
        ({"lacks": True}, ("part.missing", True)),
        ({"lacks": ["x"]}, ("part.missing", ["x"])),
    ],
    ids=repr,
)
def test_an_extension_of_a_wrong_shape_is_a_fault(world, part, fields: Any, fault: Any) -> None:
    assert world.faults(spec={"extensions": [part(**fields)]}) == [fault]


def test_the_faults_of_all_extensions_come_at_once_each_with_its_owner(world, part) -> None:
    from agent_kit import ConfigError, Fault

    def refuses(_: Any) -> Contribution:
        raise ConfigError([Fault(field="refusing.dir", value="x", remedy="name a folder.")])

    extensions = [
        part(name="refusing", brings=refuses),
        part(name="odd", writable_dirs="drafts"),
        part(name="overlapping", tool_only_dirs=(ToolOnlyDir(dir="drafts/in", instead="t"),)),
    ]
    world.has("project/drafts/in/deep/")
    found = world.faults(
        spec={"extensions": extensions}, extra_writable_dirs=["drafts/in/deep", "drafts"]
    )
    assert found == [
        ("refusing.dir", "x"),
        ("odd.writable_dirs", "drafts"),
        ("extra_writable_dirs", "drafts/in/deep"),
    ]


def test_a_later_extension_is_not_taken_for_one_that_failed(world, part) -> None:
    from agent_kit import ConfigError, Fault

    def refuses(_: Any) -> Contribution:
        raise ConfigError([Fault(field="refusing.dir", value="x", remedy="name a folder.")])

    extensions = [
        part(name="refusing", brings=refuses),
        part(name="two", read_only_dirs=("sources",)),
    ]
    world.has("project/sources/in/")
    found = world.faults(spec={"extensions": extensions}, extra_writable_dirs=["sources/in"])
    assert found == [("refusing.dir", "x"), ("extra_writable_dirs", "sources/in")]
    with pytest.raises(ConfigError, match="two's 'sources'"):
        world.plan(spec={"extensions": extensions}, extra_writable_dirs=["sources/in"])


def test_an_extensions_own_error_is_not_swallowed(world, part) -> None:
    def broken(_: Any) -> Any:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        world.plan(spec={"extensions": [part(brings=broken)]})


# --- what they bring --------------------------------------------------------------------------


def test_every_field_of_a_contribution_arrives(world, part) -> None:
    world.has("project/knowledge/", "project/more/", "plugin/skills/s/SKILL.md=x")
    api = object()

    def asked_files(_given: Any) -> list[Path]:
        return []

    extension = part(
        plugin_dir=world.root / "plugin",
        read_only_dirs=("sources",),
        readable_dirs=("more",),
        writable_dirs=("drafts",),
        tool_only_dirs=(ToolOnlyDir(dir="knowledge", instead="its tools"),),
        denied_paths=("sources/secret",),
        mcp_servers={"kb": {"type": "stdio", "command": "x"}},
        prompt_section="# Part\n\nUse it.",
        file_tools=("NotebookEdit",),
        read_only_tools=("mcp__kb__read",),
        interrupt_on={"mcp__kb__write": True},
        asked_files={"mcp__kb__write": asked_files},
        api=api,
    )
    plan = world.plan(spec={"extensions": [extension], "system_prompt": "You help."})
    verdicts = {
        ("Read", "sources/x"): True,
        ("Write", "sources/x"): False,
        ("Read", "sources/secret"): False,
        ("Read", "more/x"): True,
        ("Write", "more/x"): False,
        ("Write", "drafts/x"): True,
        ("Read", "knowledge/x"): False,
        ("Read", str(world.root / "plugin/skills/s/SKILL.md")): True,
    }
    for (tool, path), allowed in verdicts.items():
        assert (check_file_scope(plan.scope, tool, {"file_path": path}) is None) is allowed, (
            tool,
            path,
        )
    assert plan.mcp_servers == {"kb": {"type": "stdio", "command": "x"}}
    assert plan.tools.names == ("Read", "Glob", "Grep", "Write", "Edit", "Skill", "NotebookEdit")
    assert plan.skills == ("plugin:s",)
    assert plan.system_prompt.startswith("You help.")
    assert "# Part\n\nUse it." in plan.system_prompt
    assert plan.api("part") is api
    assert plan.api("other") is None
    assert plan.contributions[0].read_only_tools == ("mcp__kb__read",)
    assert plan.policy.interrupt_on == {"mcp__kb__write": True}
    assert plan.policy.asked_files == {"mcp__kb__write": asked_files}


@pytest.mark.parametrize(
    "asking",
    [
        {"mcp__other__write": True},  # of somebody else's server
        {"mcp__kb__": True},
        {"mcp__kbx__write": False},
        {"Write": False},
        {7: True},
        {"mcp__kb__write": "yes"},
        {"mcp__kb__write": 1},
    ],
    ids=repr,
)
def test_an_extension_says_of_its_own_tools_alone_whether_somebody_is_asked(
    world, part, asking: Any
) -> None:
    extension = part(mcp_servers={"kb": {"type": "stdio", "command": "x"}}, interrupt_on=asking)
    assert world.faults(spec={"extensions": [extension]}) == [("part.interrupt_on", asking)]


@pytest.mark.parametrize("about", [{"mcp__other__write": list}, {"mcp__kb__write": "file"}])
def test_an_extension_says_of_its_own_tools_alone_which_files_a_question_is_about(
    world, part, about: Any
) -> None:
    extension = part(mcp_servers={"kb": {"type": "stdio", "command": "x"}}, asked_files=about)
    assert world.faults(spec={"extensions": [extension]}) == [("part.asked_files", about)]


def test_a_server_is_made_when_the_options_are_built_and_not_before(world, part) -> None:
    made = []

    def server() -> dict[str, Any]:
        made.append(1)
        return {"type": "sdk", "name": "kb", "instance": object()}

    spec, config = (
        AgentSpec(
            name="a", extensions=[part(mcp_servers={"kb": server})], mcp_servers={"own": server}
        ),
        world.config(),
    )
    plan = plan_session(spec, config)
    assert made == []
    assert plan.mcp_servers == {"own": server, "kb": server}
    options = build_session_options(spec, config)
    assert made == [1, 1]
    assert set(options.mcp_servers) == {"own", "kb"}


async def test_pre_tool_use_hooks_run_inside_the_gate_in_order(world, part) -> None:
    order: list[str] = []

    def note(name: str, **output: Any) -> Any:
        async def callback(payload: Any, _use_id: Any, _context: Any) -> dict[str, Any]:
            order.append(f"{name}:{payload['tool_input'].get('file_path')}")
            return (
                {"hookSpecificOutput": {"hookEventName": "PreToolUse", **output}} if output else {}
            )

        return callback

    one = part(
        name="one",
        hooks={
            "PreToolUse": (note("one", updatedInput={"file_path": "b"}),),
            "Stop": (note("stop"),),
        },
    )
    two = part(
        name="two",
        hooks={
            "PreToolUse": (
                note("two", updatedInput={"file_path": str(world.project / "file.txt")}),
            )
        },
    )
    options = world.options(
        spec={"extensions": [one, two], "options": {"hooks": {"PreToolUse": [note("spec")]}}},
        hooks={"PreToolUse": [note("host")]},
    )
    (gate,) = options.hooks["PreToolUse"]
    payload = {"tool_name": "Read", "tool_input": {"file_path": "a"}, "cwd": str(world.project)}
    answer = await gate.hooks[0](payload, "id", None)
    closed = world.project / "file.txt"
    assert order == ["one:a", "two:b", f"spec:{closed}", f"host:{closed}"]
    assert answer["hookSpecificOutput"]["permissionDecision"] == "deny"  # the gate judges last
    assert len(options.hooks["Stop"]) == 1


async def test_the_first_refusal_ends_the_chain(world, part) -> None:
    seen = []

    async def refuses(*_: Any) -> dict[str, Any]:
        return {"decision": "block", "reason": "not today"}

    async def later(*_: Any) -> dict[str, Any]:
        seen.append(1)
        return {}

    options = world.options(
        spec={"extensions": [part(hooks={"PreToolUse": (refuses, later)})]},
        extra_readable_dirs=["drafts"],
    )
    payload = {
        "tool_name": "Read",
        "tool_input": {"file_path": "drafts/x"},
        "cwd": str(world.project),
    }
    answer = await options.hooks["PreToolUse"][0].hooks[0](payload, "id", None)
    assert answer["hookSpecificOutput"]["permissionDecisionReason"] == "not today"
    assert seen == []


def test_installing_is_not_using(world) -> None:
    import agent_kit_knowledge  # noqa: F401  # installed, and in no spec

    plan = world.plan()
    assert (plan.extensions, plan.mcp_servers, plan.plugins) == ((), {}, ())


def test_anything_with_the_members_is_an_extension(part) -> None:
    assert isinstance(part(), Extension)
    assert not isinstance(object(), Extension)

"""``SessionConfig``: malformed values, all at once; and subclasses with fields of their own."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import HookMatcher

from agent_kit import AgentSpec, ConfigError, SessionConfig, plan_session

BAD: dict[str, list[Any]] = {
    "project_dir": ["", None, 5, "a\0b", ["."]],
    "run_dir": ["", 5, "a\0b"],
    "config_dir": ["", 5],
    "cli_path": ["", 5],
    "mode": ["planning", "", None, 5, "Guided", []],
    "confinement": ["on", "", None, True, "External"],
    "confinement_backend": ["docker", "", True],
    "confine_network": ["yes", 2],
    "prompt_mentions": ["none", "", None, False],
    "permission_mode": ["bypass", "", 5, "yolo"],
    "extra_writable_dirs": ["drafts", 5, None],
    "extra_readable_dirs": ["drafts", None],
    "denied_paths": ["**/.env", None],
    "setting_sources": ["project", 5],
    "allow_unconfined_commands": ["yes", 1, None],
    "writable_control_files": ["no", 0],
    "strict_mcp_config": [1, None],
    "env": [[], None, "A=b"],
    "hooks": [[], None, "x"],
    "settings": [[], None, "settings.json", '{"permissions": {}}'],
    "mcp_file_tools": [[], None],
    "unlock": ["project_hooks", 5, None, {"project_hooks": True}],
    "max_turns": [0, -1, "5", 1.5, True],
    "model": ["", 5],
    "keep_runs": [-1, None, "5", 1.5, True, timedelta(seconds=-1)],
    "resume": ["", "x", 5, uuid.UUID(int=1), "{b2e4a7f0-2d0e-4b57-8a43-3a2f8a1d9f00}", "../x"],
    "session_id": ["", "x", 5, uuid.UUID(int=1), "b2e4a7f02d0e4b578a433a2f8a1d9f00"],
}
BAD_ITEMS: dict[str, list[Any]] = {
    "extra_writable_dirs": ["", None, 5, "a\0b"],
    "extra_readable_dirs": ["", None],
    "denied_paths": ["", None, "a\0b"],
    "setting_sources": ["managed", "", None],
    "unlock": ["", 5, None],
}


@pytest.mark.parametrize(
    ("field", "value"), [(f, v) for f, vs in BAD.items() for v in vs], ids=repr
)
def test_a_wrong_value_is_a_fault_with_its_field_and_value(field: str, value: Any, faults) -> None:
    assert faults(lambda: SessionConfig(**{"project_dir": ".", field: value})) == [(field, value)]


@pytest.mark.parametrize(
    ("field", "item"), [(f, v) for f, vs in BAD_ITEMS.items() for v in vs], ids=repr
)
def test_a_wrong_item_is_a_fault_with_its_value(field: str, item: Any, faults) -> None:
    assert faults(lambda: SessionConfig(project_dir=".", **{field: [item]})) == [(field, item)]


@pytest.mark.parametrize(
    "item",
    [{"A": 5}, {"A": None}, {5: "a"}, {"": "a"}, {"A=B": "c"}, {"A": "b\0"}, {"A\0": "b"}],
)
def test_a_variable_that_no_process_can_have_is_a_fault(item: Any, faults) -> None:
    assert faults(lambda: SessionConfig(project_dir=".", env={"OK": "x", **item})) == [
        ("env", item)
    ]


async def callback(*_: Any) -> dict[str, Any]:
    return {}


class Matcher:
    hooks = [callback]
    matcher = "["


@pytest.mark.parametrize(
    ("hooks", "fault"),
    [
        ({"PreToolUSe": [callback]}, ("hooks", "PreToolUSe")),
        ({"PermissionRequest": [callback]}, ("hooks", "PermissionRequest")),
        ({5: [callback]}, ("hooks", 5)),
        ({"PreToolUse": callback}, ("hooks['PreToolUse']", callback)),
        ({"Stop": None}, ("hooks['Stop']", None)),
        ({"PreToolUse": [{"matcher": "Read"}]}, ("hooks['PreToolUse']", {"matcher": "Read"})),
        ({"PreToolUse": ["ls"]}, ("hooks['PreToolUse']", "ls")),
        (
            {"PreToolUse": [HookMatcher(matcher="[", hooks=[callback])]},
            ("hooks['PreToolUse']", "["),
        ),
        ({"PreToolUse": [HookMatcher(matcher=5, hooks=[callback])]}, ("hooks['PreToolUse']", 5)),  # type: ignore[arg-type]
    ],
)
def test_a_hook_that_would_never_be_called_is_a_fault(hooks: Any, fault: Any, faults) -> None:
    assert faults(lambda: SessionConfig(project_dir=".", hooks=hooks)) == [fault]
    assert faults(lambda: AgentSpec(name="a", options={"hooks": hooks})) == [
        (f"options['hooks']{fault[0][len('hooks') :]}", fault[1])
    ]


@pytest.mark.parametrize(
    "fields",
    [
        {"confinement": "off", "confined_tools": ["python3"]},
        {"confinement": "off", "confined_git": True},
        {"confinement": "off", "confine_network": True},
        {"confinement": "off", "confinement_backend": "landlock"},
        {"confinement": "external", "confinement_backend": "bubblewrap"},
    ],
    ids=repr,
)
def test_what_is_asked_of_a_confinement_that_there_is_none_of_is_a_fault(
    fields: dict[str, Any], faults
) -> None:
    (asked,) = (item for item in fields.items() if item[0] != "confinement")
    assert faults(lambda: SessionConfig(project_dir=".", **fields)) == [asked]
    SessionConfig(project_dir=".", **{**fields, "confinement": "required"})


def test_a_network_that_stays_open_asks_nothing_of_a_confinement() -> None:
    SessionConfig(project_dir=".", confinement="off", confine_network=False, confined_tools=[])


def test_runs_are_kept_by_number_or_by_age() -> None:
    for keep in (0, 5, timedelta(), timedelta(days=30)):
        assert SessionConfig(project_dir=".", keep_runs=keep).keep_runs == keep


def test_every_malformed_value_comes_at_once(faults) -> None:
    found = faults(
        lambda: SessionConfig(  # type: ignore[call-arg]
            project_dir="",
            writable_dirs=["drafts"],
            mode="planning",
            denied_paths="x",
            keep_runs=-1,
            env={"A": 1},  # type: ignore[dict-item]
            unlock="x",
            settings="x",  # type: ignore[arg-type]
        )
    )
    assert [field for field, _ in found] == [
        "writable_dirs",
        "project_dir",
        "mode",
        "denied_paths",
        "settings",
        "env",
        "unlock",
        "keep_runs",
    ]


def test_a_resumed_session_has_the_id_that_it_had(faults) -> None:
    one, other = str(uuid.uuid4()), str(uuid.uuid4())
    assert faults(lambda: SessionConfig(project_dir=".", resume=one, session_id=other)) == [
        ("session_id", other)
    ]


def test_a_missing_project_is_a_fault(faults) -> None:
    assert faults(lambda: SessionConfig()) == [("project_dir", None)]  # type: ignore[call-arg]


def test_paths_may_be_path_objects_and_unlock_a_set() -> None:
    config = SessionConfig(
        project_dir=Path("p"), extra_writable_dirs=[Path("a")], run_dir=Path("r"), unlock={"b", "a"}
    )
    assert (config.project_dir, config.extra_writable_dirs, config.run_dir) == ("p", ("a",), "r")
    assert config.unlock == ("a", "b")


# --- subclasses -------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class CourseConfig(SessionConfig):
    course: str
    level: int = 1


def test_a_subclass_has_fields_of_its_own_and_functions_in_the_spec_get_it(world, part) -> None:
    seen = []

    def brings(context: Any) -> Any:
        from agent_kit import Contribution

        seen.append(context.config)
        return Contribution()

    config = CourseConfig(project_dir=world.project, run_dir=str(world.run), course="Latin")
    spec = AgentSpec(
        name="a",
        system_prompt=lambda config: f"You teach {config.course}, level {config.level}.",
        extensions=[part(brings=brings)],
    )
    plan = plan_session(spec, config)
    assert plan.system_prompt.startswith("You teach Latin, level 1.")
    assert seen == [config]
    assert plan.config is config


def test_a_subclass_is_checked_like_its_parent(faults) -> None:
    assert faults(lambda: CourseConfig(project_dir="", course="x", mode="?")) == [
        ("project_dir", ""),
        ("mode", "?"),
    ]
    assert faults(lambda: CourseConfig(project_dir=".")) == [("course", None)]  # type: ignore[call-arg]
    assert faults(lambda: CourseConfig(project_dir=".", course="x", curse="y")) == [("curse", "y")]  # type: ignore[call-arg]


@pytest.mark.parametrize("given", [None, 5, ["x"], b"x"])
def test_a_prompt_function_that_gives_no_text_is_a_fault(world, given: Any) -> None:
    assert world.faults(spec={"system_prompt": lambda _: given}) == [("system_prompt", given)]


def test_an_error_of_a_prompt_function_is_its_own(world) -> None:
    def broken(_: Any) -> str:
        raise KeyError("course")

    with pytest.raises(KeyError, match="course"):
        world.plan(spec={"system_prompt": broken})


def test_a_config_error_is_a_value_error() -> None:
    assert issubclass(ConfigError, ValueError)

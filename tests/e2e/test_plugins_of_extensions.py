"""The extensions' skills and commands on the real CLI: listed, loaded by a call, expanded in a prompt."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import frontmatter
import pytest

from agent_kit.testing import AnsweredBy, Request, Say, SessionRun, ToolCall
from agent_kit_knowledge import knowledge
from agent_kit_memory import memory
from agent_kit_sources import sources

if TYPE_CHECKING:
    from tests.e2e.conftest import Course

pytestmark = pytest.mark.e2e

EXTENSIONS = (sources(), knowledge(), memory(dir="memory"))


def _bodies() -> dict[str, frontmatter.Post]:
    """Every skill and command by the name that the CLI gives it, read from the plugin folders."""
    found = {}
    for extension in EXTENSIONS:
        folder = extension.plugin_dir
        assert folder is not None
        for path in (*folder.glob("skills/*/SKILL.md"), *folder.glob("commands/*.md")):
            own = path.parent.name if path.name == "SKILL.md" else path.stem
            found[f"{extension.name}:{own}"] = frontmatter.load(str(path))
    return found


BODIES = _bodies()
ARGUMENTS = "the-blue-bicycle"
_TOOL = re.compile(r"`((?:knowledge|list|save_to|extract)_[a-z_]+|recall|remember|forget)`")


def test_these_are_the_skills_and_commands_that_the_documentation_names() -> None:
    table = (Path(__file__).parents[2] / "docs" / "pages.md").read_text("utf-8")
    (row,) = (line for line in table.splitlines() if line.startswith("| skills and commands |"))
    columns = [column.strip().split(", ") for column in row.strip("| ").split("|")[1:]]
    named = {
        f"{extension.name}:{name}"
        for extension, column in zip(EXTENSIONS, columns, strict=True)
        for name in column
    }
    assert {*BODIES} == named


def _held(request: Request, text: str) -> bool:
    """Whether the conversation or the instructions hold ``text``."""
    return any(not place.startswith(".tools") for place in request.where(text) if place != "raw")


# --- listed ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def called(new_course: Callable[[], Course]) -> SessionRun:
    """A session in which the model calls each of them, one after the other."""
    calls = [ToolCall("Skill", {"skill": name, "args": ARGUMENTS}) for name in BODIES]
    return new_course().session([*calls, Say("Done.")])


@pytest.mark.parametrize("name", BODIES)
def test_the_first_request_lists_it_with_its_description(name: str, called: SessionRun) -> None:
    first = called.requests[0]
    assert _held(first, f"{name}: {BODIES[name]['description']}")
    assert [tool["name"] for tool in first.body["tools"]].count("Skill") == 1


@pytest.mark.parametrize("name", BODIES)
def test_every_tool_that_it_names_is_offered(name: str, called: SessionRun) -> None:
    server, first = name.partition(":")[0], called.requests[0]
    named = set(_TOOL.findall(BODIES[name].content))
    assert named
    assert not [tool for tool in named if not first.saw(f"mcp__{server}__{tool}")]


def test_without_the_extensions_none_is_listed_and_none_can_be_called(course: Course) -> None:
    calls = [ToolCall("Skill", {"skill": name}) for name in BODIES]
    run = course.session([*calls, Say("Done.")], spec={"extensions": [], "tools": ["Skill"]})
    assert all(call.is_error for call in run.calls)
    for name, body in BODIES.items():
        assert not run.requests[0].saw(name)
        assert not run.saw(body.content.splitlines()[0])


def test_own_notes_and_their_session_have_no_skills_of_the_base(course: Course) -> None:
    run = course.session(
        [Say("Done.")], spec={"extensions": [knowledge(dir="notes", own_notes=True)]}
    )
    assert not [name for name in BODIES if run.saw(name)]


# --- loaded by a call -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", BODIES)
def test_a_call_brings_the_whole_text_into_the_next_request_and_not_before(
    name: str, called: SessionRun
) -> None:
    at = [*BODIES].index(name)
    text = _filled(name)
    assert called.calls[at].lock is AnsweredBy.RAN
    assert not called.calls[at].is_error
    assert not _held(called.requests[at], text)
    assert _held(called.requests[at + 1], text)


def _filled(name: str) -> str:
    """The body with the arguments where it has a place for them."""
    return BODIES[name].content.replace("$ARGUMENTS", ARGUMENTS)


# --- expanded in a prompt -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def prompted(new_course: Callable[[], Course]) -> SessionRun:
    """A session in which the person gives each as a prompt."""
    prompts = [f"/{name} {ARGUMENTS}" for name in BODIES]

    def well(_turn: Any) -> str:
        return "Well."

    return new_course().session(well, run={"prompt": prompts})


@pytest.mark.parametrize("name", BODIES)
def test_as_a_prompt_it_arrives_expanded_with_its_arguments(
    name: str, prompted: SessionRun
) -> None:
    at = [*BODIES].index(name)
    assert prompted.prompts[at].text == "Well."
    assert prompted.prompts[at].lock is AnsweredBy.RAN
    request, before = _answered(prompted)[at], _answered(prompted)[:at]
    for text in (_filled(name), f"<command-name>/{name}</command-name>"):
        assert _held(request, text)
        assert not [each for each in before if _held(each, text)]
    arguments = [each.text.count(ARGUMENTS) for each in (*before, request)]
    assert arguments == sorted({*arguments}), "each brings its own"


def _answered(run: SessionRun) -> list[Request]:
    """The requests that a prompt led to, one each."""
    return [request for request in run.requests if not request.side]

"""``@path`` in a prompt attaches a file with no tool call at all: a whole session with the prompt gate.

Each form stands for a file of its own, so that the control shows for each that the CLI expands it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from agent_kit.testing import AnsweredBy, SessionRun, tree

if TYPE_CHECKING:
    from tests.e2e.conftest import Course

pytestmark = pytest.mark.e2e

# The prompt, and the closed file whose canary it would attach.
EXPANDED = {
    "bare": ("What is in @m0.txt", "course/m0.txt"),
    "dot": ("@./m1.txt", "course/m1.txt"),
    "up": ("See @../m2.txt now.", "m2.txt"),
    "up and down": ("@sources/../m3.txt", "course/m3.txt"),
    "home": ("@~/m4.txt", "home/m4.txt"),
    "absolute": ("@<out>/m5.txt", "out/m5.txt"),
    "lines": ("@m6.txt#L1-9", "course/m6.txt"),
    "one line": ("@<out>/m7.txt#L1", "out/m7.txt"),
    "an anchor": ("@m8.txt#part", "course/m8.txt"),
    "a comma after": ("@m9.txt, please", "course/m9.txt"),
    "a full stop after": ("Look at @m10.txt.", "course/m10.txt"),
    "a bracket after": ("(see @m11.txt)", "course/m11.txt"),
    "quoted": ('@"m12 with spaces.txt"', "course/m12 with spaces.txt"),
    "quoted, outside": ('@"<out>/m13 x.txt" and so on', "out/m13 x.txt"),
    "quoted, home": ('@"~/m14.txt"', "home/m14.txt"),
    "quoted, with lines": ('@"m15.txt#L1"', "course/m15.txt"),
    "after a line break": ("First\n@m16.txt", "course/m16.txt"),
    "after a wide space": ("First\u3000@m17.txt", "course/m17.txt"),
    "after a full-width mark": ("First\u3002@m18.txt", "course/m18.txt"),
    # Not a file that a later prompt mentions: the CLI takes it for attached already.
    "a second mention": ("@sources/first.txt and @m19.txt", "course/m19.txt"),
    "through a link": ("@sources/m20link.txt", "course/m20.txt"),
    "through a linked folder": ("@sources/outlink/m21.txt", "out/m21.txt"),
    "/proc/self/root": ("@/proc/self/root<out>/m22.txt", "out/m22.txt"),
    "tools only": ("@knowledge/m23.txt", "course/knowledge/m23.txt"),
    "a name with an accent": ("@m24-\u00e9.txt", "course/m24-\u00e9.txt"),
    "a folder's names": ("@m25", "course/m25/canary(m25).txt"),
    "a folder's names, a slash after": ("@m26/", "course/m26/canary(m26).txt"),
    "a folder outside": ("@<out>/m27", "out/m27/canary(m27).txt"),
    "the project": ("@.m28/.. then", "course/.m28/canary(m28).txt"),
}
BESIDE = (
    "course/sources/first.txt=x",
    "course/sources/m20link.txt => ../m20.txt",
    "course/sources/outlink => ../../out",
)
# A Read deny rule stops these also where the prompt gate lets everything through.
DENIED = {
    "denied": "@agent.config.json",
    "denied, quoted": '@"agent.config.json"',
    "denied by a pattern": "@drafts/.env",
    "denied by a pattern, readable folder": "@sources/keys/exam.pem",
    "denied by a pattern, outside": "@<out>/.env",
}
NOT_IN_CONTROL = {
    # The CLI collapses it to the project folder, whose names hold no canary.
    "the project",
}
# Things that the CLI doesn't expand, or that attach nothing: they pass.
LOOK_ALIKES = {
    "a decorator": "Use @dataclass there.",
    "an address": "Write to me@README.md",
    "in brackets": "(@README.md)",
    "in back quotes": "`@README.md`",
    "in single quotes": "@'README.md'",
    "in quotes": '"@README.md"',
    "nothing there": "@nothing-there.md",
    "other letters": "@readme.MD",
    "a lone sign": "@ README.md",
    "a handle": "Thanks @ada!",
}
ALLOWED = {
    "a source": ("@sources/syllabus.md", "syllabus"),
    "a draft, quoted": ('@"drafts/newsletter.md" and more', "newsletter"),
    "a folder": ("@sources", "sourcename"),
}


def prepare(course: Course) -> Course:
    files = []
    for number, (_, place) in enumerate(EXPANDED.values()):
        canary = "x" if f"canary(m{number})" in place else f"canary(m{number})"
        files.append(f"{place}={canary}")
    tree(course.root, [*files, *BESIDE])
    return course


def prompts_of(course: Course, *tables: Any) -> list[str]:
    return [
        course.text(row if isinstance(row, str) else row[0])
        for table in tables
        for row in table.values()
    ]


def ask(course: Course, prompts: list[str], **config: Any) -> SessionRun:
    """One session; the model answers every prompt that reaches it with a word."""
    return course.session(lambda _: "Well.", run={"prompt": prompts}, **config)


# --- scope: the default ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def scoped(shared_course: Course) -> SessionRun:
    course = prepare(shared_course)
    return ask(course, prompts_of(course, EXPANDED, DENIED, LOOK_ALIKES, ALLOWED))


def names(*tables: Any) -> list[str]:
    return [name for table in tables for name in table]


ALL = names(EXPANDED, DENIED, LOOK_ALIKES, ALLOWED)


@pytest.mark.parametrize("form", names(EXPANDED, DENIED))
def test_a_prompt_that_mentions_a_closed_file_is_blocked(form: str, scoped: SessionRun) -> None:
    record = scoped.prompts[ALL.index(form)]
    assert record.lock is AnsweredBy.PROMPT_GATE
    assert "@" in (record.blocked or "")


@pytest.mark.parametrize("form", LOOK_ALIKES)
def test_a_prompt_that_only_looks_so_passes(form: str, scoped: SessionRun) -> None:
    assert scoped.prompts[ALL.index(form)].text == "Well."


@pytest.mark.parametrize("form", ALLOWED)
def test_a_mention_of_an_open_file_passes_and_is_attached(
    form: str, shared_course: Course, scoped: SessionRun
) -> None:
    assert scoped.prompts[ALL.index(form)].text == "Well."
    assert ALLOWED[form][1] in shared_course.seen(scoped)


def test_a_blocked_prompt_makes_no_request_and_is_not_kept(
    shared_course: Course, scoped: SessionRun
) -> None:
    asked = [request for request in scoped.requests if not request.side]
    assert len(asked) == len(LOOK_ALIKES) + len(ALLOWED)
    for prompt in prompts_of(shared_course, EXPANDED, DENIED):
        assert not any(prompt in str(request.body["messages"]) for request in asked)


def test_no_canary_of_a_closed_file_was_attached(shared_course: Course, scoped: SessionRun) -> None:
    assert shared_course.seen(scoped) == {"syllabus", "newsletter", "sourcename"}


# --- any: the control ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def anything(new_course: Callable[[], Course]) -> tuple[Course, SessionRun]:
    course = prepare(new_course())
    prompts = prompts_of(course, EXPANDED, DENIED)
    return course, ask(course, prompts, prompt_mentions="any")


@pytest.mark.parametrize("form", [name for name in EXPANDED if name not in NOT_IN_CONTROL])
def test_without_the_prompt_gate_the_cli_attaches_it(
    form: str, anything: tuple[Course, SessionRun]
) -> None:
    course, run = anything
    assert f"m{list(EXPANDED).index(form)}" in course.seen(run)


def test_without_the_prompt_gate_the_rules_still_hold_the_denied(
    anything: tuple[Course, SessionRun],
) -> None:
    course, run = anything
    assert not course.seen(run) & {"config", "draftsenv", "exampem", "outenv"}


# --- off: nothing is expanded ----------------------------------------------------------------


def test_with_mentions_off_every_prompt_passes_and_nothing_is_attached(course: Course) -> None:
    prompts = prompts_of(prepare(course), EXPANDED, DENIED, ALLOWED)
    run = ask(course, prompts, prompt_mentions="off")
    assert [record.text for record in run.prompts] == ["Well."] * len(prompts)
    assert course.seen(run) == set()


# --- beside other hooks ----------------------------------------------------------------------


async def careless(_payload: Any, _use_id: str | None, _context: Any) -> Any:
    raise RuntimeError("the hook's own secret")


async def generous(_payload: Any, _use_id: str | None, _context: Any) -> Any:
    return {
        "hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": "hint"}
    }


@pytest.mark.parametrize("hook", [careless, generous])
def test_a_host_s_own_prompt_hook_doesn_t_open_the_prompt_gate(
    hook: Callable[..., Any], course: Course
) -> None:
    prompts = ["@README.md", "@sources/syllabus.md"]
    run = ask(course, prompts, hooks={"UserPromptSubmit": [hook]})
    assert [record.lock for record in run.prompts] == [AnsweredBy.PROMPT_GATE, AnsweredBy.RAN]
    assert course.seen(run) == {"syllabus"}
    assert run.saw("hint") is (hook is generous)


def test_a_prompt_that_can_t_be_judged_is_blocked(
    course: Course, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RecursionError

    options = course.options()
    monkeypatch.setattr("agent_kit.sdk.prompt_gate.refused_mention", broken)
    with caplog.at_level("CRITICAL", "agent_kit"):
        run = course.run(options, lambda _: "Well.", prompt=["@README.md", "Hello."])
    assert [record.lock for record in run.prompts] == [AnsweredBy.PROMPT_GATE] * 2
    assert course.seen(run) == set()

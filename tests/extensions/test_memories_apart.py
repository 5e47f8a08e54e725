"""Two people's memories never meet, on either store: by any names, and in many processes at once."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_kit.extension import ExtensionContext
from agent_kit.store import StoreError, postgres_store
from agent_kit_memory import Memory, memory
from tests.store.postgres_server import running_server

_NUMBERS = count()


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    with running_server() as server:
        yield server.make_database("people")


@pytest.fixture(params=["folder", "postgres"])
def base(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The DSN, or nothing where the notes lie in folders below ``XDG_DATA_HOME``."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return "" if request.param == "folder" else str(request.getfixturevalue("dsn"))


def _opened(agent: str, person: str, project: str, dsn: str, name: str) -> Memory:
    """The notes of a session of this agent with this person; ``name`` is the database's base."""
    context = ExtensionContext(
        config=SimpleNamespace(denied_paths=(), who=person),
        spec=SimpleNamespace(name=agent),
        project_dir=Path(project),
        run_dir=Path(project) / "run",
        mode="guided",
    )
    store = postgres_store(dsn, base=name) if dsn else None
    notes = memory(user=lambda config: config.who, store=store).contribute(context).api
    assert isinstance(notes, Memory)
    return notes


@pytest.mark.parametrize("differs", ["the project", "the agent"])
def test_memories_in_folders_of_one_name_are_apart_in_one_database(
    dsn: str, tmp_path: Path, differs: str
) -> None:
    def opened(agent: str, project: str) -> Memory:
        folder = tmp_path / project
        folder.mkdir(exist_ok=True)
        context = ExtensionContext(
            config=SimpleNamespace(denied_paths=()),
            spec=SimpleNamespace(name=agent),
            project_dir=folder,
            run_dir=folder / "run",
            mode="guided",
        )
        store = postgres_store(dsn, base=f"{differs} differs")
        notes = memory(dir="memory", store=store).contribute(context).api
        assert isinstance(notes, Memory)
        return notes

    first = opened("tutor", "one")
    first.prompts.add("I like tea.")
    first.remember("Ada likes tea.", quote="I like tea.")
    other = opened("tutor", "two") if differs == "the project" else opened("clerk", "one")
    assert not other.recall().notes
    assert len(opened("tutor", "one").recall().notes) == 1


# --- by any names ---------------------------------------------------------------------------------

# Names that somebody might take for one: case, Unicode forms, letters of two scripts, white space, what
# paths, SQL and C read.
NEAR = (
    ("ada", "Ada", "ADA"),
    ("ada", "\u00e1da", "a\u0301da", "\uff41da", "\u0430da"),
    ("ada", "ada ", " ada", "ada\n", "ada\u00a0"),
    ("ada", "ada/", "/ada", "ada/..", "../ada", "ada\\"),
    ("a-da", "a/da", "a da", "a_da", "a%da", "a'da"),
    ("ada", "ada\0", "ada\0x"),
    ("Stra\u00dfe", "strasse", "STRASSE"),
)


@st.composite
def _people(draw: st.DrawFn) -> list[tuple[str, str]]:
    """Two to four of them: the agent and the person."""
    names = st.sampled_from(draw(st.sampled_from(NEAR)))
    names |= st.text(min_size=1, max_size=5).filter(_is_a_name)
    agents = draw(st.sampled_from((("helper",), ("helper",), ("helper", "helper-2", "memory"))))
    pairs = st.tuples(st.sampled_from(agents), names)
    return draw(st.lists(pairs, min_size=2, max_size=4, unique=True))


def _is_a_name(person: str) -> bool:
    return bool(person.strip()) and not any("\ud800" <= char <= "\udfff" for char in person)


WORDS = ("tea", "coffee", "mate")
# (which of the people, what is done, which word)
STEPS = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from(("remember", "remember", "forget", "anew")),
        st.sampled_from(WORDS),
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=120)
@given(
    people=_people(),
    steps=STEPS,
)
def _check_apart(
    base: str, people: list[tuple[str, str]], steps: list[tuple[int, str, str]]
) -> None:
    name = f"law{next(_NUMBERS)}"
    with tempfile.TemporaryDirectory() as project:
        # each example has its own agents, or folders of before would be found
        who = [(f"{name}-{agent}", person) for agent, person in people]
        notes = [_opened(*each, project, base, name) for each in who]
        kept: list[dict[str, str]] = [{} for _ in who]  # id to text, for each
        for at, what, word in steps:
            at %= len(who)
            if what == "anew":
                notes[at] = _opened(*who[at], project, base, name)
            elif what == "remember":
                notes[at].prompts.add(f"I like {word}.")
                note, is_new = notes[at].remember(f"Likes {word}.", quote=f"I like {word}.")
                assert is_new == (f"Likes {word}." not in kept[at].values())
                kept[at][str(note.id)] = note.text
            elif word in " ".join(kept[at].values()):
                gone = next(known for known, text in kept[at].items() if word in text)
                assert str(notes[at].forget(gone)) == gone
                del kept[at][gone]
            else:  # not even a note of somebody else's with that very name
                with pytest.raises(StoreError):
                    notes[at].forget(f"fact/likes-{word}")
            for own, expected in zip(notes, kept, strict=True):
                _check_holds(own, expected)


def _check_holds(own: Memory, expected: dict[str, str]) -> None:
    """That a memory has these notes and shows no other, however it is asked."""
    listed = own.recall()
    assert {str(note.id): note.text for note in listed.notes} == expected
    assert (listed.total, listed.unusable) == (len(expected), ())
    found = own.recall("likes tea coffee mate")
    assert {str(note.id): note.text for note in found.notes} == expected
    assert found.total == len(expected)
    assert own.store.history().total == 0


def test_whatever_they_are_called_nobody_meets_anothers_notes(base: str) -> None:
    _check_apart(base)


# --- in many processes ----------------------------------------------------------------------------

MOST_SECONDS = (
    90.0  # until each has so many notes that were kept, and so many processes were killed
)
LEAST, KILLS = 25, 10
# Each has two processes at a time; the names are nearly one, and so are the agents'.
WHO = (("kit", "ada"), ("kit", "Ada"), ("kit", "ada/"), ("kit-ada", "ada"))

# It writes what it is called into every note, and looks whether any other's is there.
_PROCESS = """
import itertools, os, sys
from tests.extensions.test_memories_apart import _opened
from agent_kit.store import StoreCode, StoreError
agent, person, mark, project, dsn = sys.argv[1:]
notes = _opened(agent, person, project, dsn, "crowd")
notes.prompts.add("I said so.")
for number in itertools.count():
    word = f"{mark}x{os.getpid()}x{number}"
    try:
        if number % 7 == 6:
            seen = [*notes.recall().notes, *notes.recall("said crowd").notes]
            known = [note for note in seen if not note.text.startswith("gone")]
            strangers = [note.text for note in seen if f" {mark}x" not in note.text]
            assert not strangers, strangers
            if number % 21 == 20:
                notes.forget(str(notes.remember(f"gone crowd {word}", quote="I said so.")[0].id))
        else:
            notes.remember(f"said crowd {word}", quote="I said so.")
            print(word, flush=True)
    except StoreError as error:
        if error.code not in (StoreCode.BUSY, StoreCode.UNFINISHED, StoreCode.STALE):
            raise
"""


def test_eight_processes_of_four_people_some_of_them_killed_never_mix(
    base: str, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    told: list[set[str]] = [set() for _ in WHO]
    errors: list[str] = []
    listeners: list[threading.Thread] = []

    def start(at: int) -> subprocess.Popen[str]:
        words = (sys.executable, "-W", "error", "-c", _PROCESS)
        process = subprocess.Popen(
            [*words, *WHO[at], f"mark{at}", str(project), base],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        listeners.append(threading.Thread(target=listen, args=(at, process), daemon=True))
        listeners[-1].start()
        return process

    def listen(at: int, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        with process.stdout, process.stderr:
            told[at].update(line.strip() for line in process.stdout if line.endswith("\n"))
            said = process.stderr.read()
        if process.wait() != -signal.SIGKILL:
            errors.append(said)

    running = [start(at % len(WHO)) for at in range(2 * len(WHO))]
    end, killed, chance = time.monotonic() + MOST_SECONDS, 0, random.Random(1)
    while (killed < KILLS or min(map(len, told)) < LEAST) and not errors:
        assert time.monotonic() < end, told
        time.sleep(chance.uniform(0.3, 1.2))
        at = chance.randrange(len(running))
        running[at].kill()
        killed += 1
        running[at] = start(at % len(WHO))
    for process in running:
        process.kill()
    for listener in listeners:
        listener.join(30)
    assert not errors, errors[0]

    for at, (agent, person) in enumerate(WHO):
        notes = _opened(agent, person, str(project), base, "crowd")
        found = notes.recall(limit=100_000)
        texts = [note.text for note in found.notes]
        assert not [text for text in texts if f" mark{at}x" not in text]
        assert len(told[at]) >= LEAST
        assert told[at] <= {text.rpartition(" ")[2] for text in texts}
        assert (found.total, found.unusable) == (len(texts), ())
        assert notes.recall("crowd", limit=1).total == len(texts)

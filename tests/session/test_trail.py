"""The decision trail: its file, its queue, the logger and the span. What a line says is in test_trail_entry."""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import json
import logging
import os
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.trace import INVALID_SPAN_CONTEXT, NonRecordingSpan

from agent_kit.policy.judged import Judged
from agent_kit.session import trail as trail_module
from agent_kit.session import trail_file
from agent_kit.session.trail import QUEUE, Trail, read_trail, trail_path
from agent_kit.session.trail_file import TrailFile

CONTENT = "canary-of-a-files-content"
KEY = "sk-ant-" + "api03-A1b2C3d4E5f6G7h8I9j0"


def judged(number: int | str = 0, **fields: Any) -> Judged:
    base = {"session_id": "s", "verdict": "allow", "lock": "gate", "tool": "Read"}
    return Judged(**{**base, "tool_input": {"file_path": str(number)}, **fields})


def targets(path: Path) -> list[Any]:
    """Of each line: what it is about, or how many were lost there."""
    return [line.get("target", line.get("lost")) for line in read_trail(path)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return trail_path(tmp_path, "s")


@pytest.fixture
def made() -> Iterator[Callable[..., Trail]]:
    trails: list[Trail] = []

    def make(path: Path, **how: Any) -> Trail:
        trails.append(Trail(path, **how))
        return trails[-1]

    yield make
    for one in trails:
        assert one.close(10)


Make = Callable[..., Trail]


class Disk:
    """``os.write`` of the trail's file: ``stuck`` until released, or failing with ``error``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.free, self.reached = threading.Event(), threading.Event()
        self.free.set()
        self.error: OSError | None = None
        self.most: int | None = None
        self.write: Callable[[int, bytes], int] = os.write
        monkeypatch.setattr(os, "write", self)

    def __call__(self, handle: int, data: bytes) -> int:
        if threading.current_thread().name != "agent-kit trail":
            return self.write(handle, data)
        self.reached.set()
        assert self.free.wait(60)
        if self.error is not None:
            raise self.error
        return self.write(handle, data[: self.most])


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    disk = Disk(monkeypatch)
    yield disk
    disk.free.set()


# The file


def test_each_call_is_one_line_in_the_order_they_were_noted(path: Path, made: Make) -> None:
    trail = made(path)
    for number in range(300):
        trail.note(judged(number))
    assert trail.flush()
    assert [json.loads(line)["target"] for line in path.read_bytes().splitlines()] == [
        str(number) for number in range(300)
    ]


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o277])
def test_the_file_is_for_this_user_alone(path: Path, made: Make, mask: int) -> None:
    kept = os.umask(mask)
    try:
        trail = made(path, max_bytes=300)
        for number in range(5):
            trail.note(judged(number))
        assert trail.flush()
    finally:
        os.umask(kept)
    files = list(path.parent.iterdir())
    assert len(files) > 2
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_a_file_that_others_could_read_is_closed_to_them(path: Path, made: Make) -> None:
    path.write_text('{"target": "before"}\n')
    path.chmod(0o644)
    trail = made(path)
    trail.note(judged(1))
    assert trail.flush()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_resumed_session_goes_on_in_the_same_file(path: Path, made: Make) -> None:
    for number in range(3):
        trail = made(path)
        trail.note(judged(number))
        assert trail.close()
    assert targets(path) == ["0", "1", "2"]


def test_after_a_line_torn_by_a_killed_host_the_next_begins_on_a_new_one(
    path: Path, made: Make
) -> None:
    path.write_bytes(b'{"target": "a"}\n{"target": "b", "verd')
    trail = made(path)
    trail.note(judged(1))
    trail.note(judged(2))
    assert trail.flush()
    assert path.read_bytes().startswith(b'{"target": "a"}\n{"target": "b", "verd\n{"time"')
    assert targets(path) == ["a", "1", "2"]


def test_nothing_is_there_before_the_first_call(path: Path, made: Make) -> None:
    before = threading.active_count()
    trail = made(path)
    assert trail.flush() and trail.close()
    assert threading.active_count() == before and list(path.parent.iterdir()) == []


@pytest.mark.parametrize("there", [True, False], ids=["to a file", "to nothing"])
def test_a_link_in_its_place_is_not_followed(
    path: Path, made: Make, there: bool, caplog: pytest.LogCaptureFixture
) -> None:
    elsewhere = path.parent / "elsewhere"
    if there:
        elsewhere.write_text("kept")
    path.symlink_to(elsewhere)
    trail = made(path)
    trail.note(judged(1))
    assert trail.flush()
    assert (elsewhere.read_text() if there else not elsewhere.exists()) in ("kept", True)
    assert path.is_symlink()
    assert "decisions are missing" in caplog.text


def test_a_named_pipe_in_its_place_does_not_hold_up_the_trail(
    path: Path, made: Make, caplog: pytest.LogCaptureFixture
) -> None:
    os.mkfifo(path)
    trail = made(path)
    trail.note(judged(1))
    assert trail.flush()
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        trail.note(judged(2))
        assert trail.flush()
        assert os.read(reader, 100) == b""
    finally:
        os.close(reader)
    assert len(caplog.records) == 1


def test_a_folder_that_is_missing_costs_lines_until_it_is_there(
    tmp_path: Path, made: Make, caplog: pytest.LogCaptureFixture
) -> None:
    path = trail_path(tmp_path / "host", "s")
    trail = made(path)
    for number in range(3):
        trail.note(judged(number))
    assert trail.flush()
    path.parent.mkdir()
    trail.note(judged(3))
    assert trail.flush()
    assert targets(path) == [3, "3"]
    assert len(caplog.records) == 1


def test_a_file_that_is_taken_away_meanwhile_is_begun_anew(path: Path, made: Make) -> None:
    trail = made(path)
    trail.note(judged(1))
    assert trail.flush()
    path.rename(path.with_name("moved"))
    trail.note(judged(2))
    assert trail.flush()
    path.unlink()
    trail.note(judged(3))
    assert trail.flush()
    assert (targets(path.with_name("moved")), targets(path)) == (["1"], ["3"])


# Rotation


def test_rotation_keeps_each_line_whole_and_in_order_over_the_boundary(
    path: Path, made: Make
) -> None:
    trail = made(path, max_bytes=1000, keep=1000)
    for number in range(200):
        trail.note(judged(number))
    assert trail.flush()
    files = list(path.parent.iterdir())
    assert len(files) > 30
    assert all(file.stat().st_size <= 1000 for file in files)
    assert all(file.read_bytes().endswith(b"\n") for file in files)
    assert targets(path) == [str(number) for number in range(200)]


def test_rotation_keeps_so_many_files_the_newest(path: Path, made: Make) -> None:
    trail = made(path, max_bytes=1, keep=3)
    for number in range(10):
        trail.note(judged(number))
    assert trail.flush()
    assert sorted(file.name for file in path.parent.iterdir()) == [
        path.name,
        *(f"{path.name}.{number}" for number in (1, 2, 3)),
    ]
    assert targets(path) == ["6", "7", "8", "9"]


def test_a_file_at_its_size_takes_no_more(path: Path) -> None:
    file = TrailFile(path, max_bytes=8, keep=2)
    for line in (b"{1:3}\n", b"{}", b"\n", b"{}\n"):
        file.write(line)
    file.close()
    assert path.with_name(path.name + ".1").read_bytes() == b"{1:3}\n{}"
    assert path.read_bytes() == b"\n{}\n"


def test_where_files_cannot_be_moved_the_lines_are_kept_all_the_same(
    path: Path, made: Make
) -> None:
    path.with_name(path.name + ".1").mkdir()
    (path.with_name(path.name + ".1") / "file").touch()
    trail = made(path, max_bytes=1, keep=1)
    for number in range(3):
        trail.note(judged(number))
    assert trail.flush()
    assert len(path.read_bytes().splitlines()) == 3


# A disk that is slow, or full


def test_a_stuck_disk_does_not_hold_up_the_call_and_costs_what_the_queue_does_not_hold(
    path: Path, made: Make, disk: Disk, caplog: pytest.LogCaptureFixture
) -> None:
    trail = made(path)
    disk.free.clear()
    trail.note(judged(0))
    assert disk.reached.wait(10)  # the thread has it, and the queue is empty
    begin = time.monotonic()
    for number in range(1, QUEUE + 101):
        trail.note(judged(number))
    assert time.monotonic() - begin < 10  # the disk would take for ever
    assert not trail.flush(0.01)
    assert not trail.close(0.01)
    disk.free.set()
    assert trail.flush(60)
    trail.note(judged("after"))
    assert trail.flush()
    kept = [str(number) for number in range(QUEUE + 1)]
    assert targets(path) == [*kept, 100, "after"]
    assert [record.name for record in caplog.records] == ["agent_kit.trail"]
    assert "more is judged than can be written" in caplog.text


def test_lost_lines_stand_where_they_were_lost(
    path: Path, made: Make, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trail_module, "QUEUE", 2)
    trail = made(path)
    disk.free.clear()
    trail.note(judged("a"))
    assert disk.reached.wait(10)
    for name in ("b", "c", "lost", "lost"):
        trail.note(judged(name))
    disk.free.set()
    assert trail.flush()
    trail.note(judged("d"))
    assert trail.flush()
    assert targets(path) == ["a", "b", "c", 2, "d"]


async def test_the_event_loop_goes_on_while_the_disk_is_stuck(
    path: Path, made: Make, disk: Disk
) -> None:
    trail = made(path)
    disk.free.clear()
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.001)

    ticking = asyncio.create_task(tick())
    spent = 0.0
    for number in range(200):
        begin = time.monotonic()
        trail.note(judged(number))
        spent += time.monotonic() - begin
        await asyncio.sleep(0.001)
    ticking.cancel()
    assert ticks > 100 and spent < 10  # the disk would take for ever
    disk.free.set()
    assert await asyncio.to_thread(trail.flush, 60)
    assert len(targets(path)) == 200


def test_a_full_disk_loses_lines_and_says_so_in_the_log_once_and_in_the_next_line(
    path: Path, made: Make, disk: Disk, caplog: pytest.LogCaptureFixture
) -> None:
    trail = made(path)
    trail.note(judged("before"))
    assert trail.flush()
    disk.error = OSError(28, "No space left on device")
    for number in range(5):
        trail.note(judged(number))
    assert trail.flush()
    disk.error = None
    trail.note(judged("after"))
    assert trail.flush()
    assert targets(path) == ["before", 5, "after"]
    assert [record.getMessage() for record in caplog.records] == [
        f"decisions are missing in {path}: [Errno 28] No space left on device"
    ]


def test_what_was_lost_is_said_at_the_end_where_no_line_follows(
    path: Path, made: Make, disk: Disk
) -> None:
    trail = made(path)
    disk.error = OSError(28, "No space left on device")
    trail.note(judged())
    assert trail.flush()
    disk.error = None
    assert trail.close()
    assert targets(path) == [1]


def test_a_line_of_which_a_part_found_room_is_lost_and_spoils_no_other(
    path: Path, made: Make, disk: Disk
) -> None:
    trail = made(path)
    trail.note(judged("before"))
    assert trail.flush()
    handles = itertools.count()
    write = disk.write

    def half(handle: int, data: bytes) -> int:
        if next(handles):
            raise OSError(28, "No space left on device")
        return write(handle, data[:10])

    disk.write = half
    trail.note(judged("torn"))
    assert trail.flush()
    disk.write = write
    trail.note(judged("after"))
    assert trail.flush()
    assert b'\n{"time": "\n{"time": ' in path.read_bytes()
    assert targets(path) == ["before", 1, "after"]


def test_a_disk_that_takes_a_byte_at_a_time_gets_whole_lines(
    path: Path, made: Make, disk: Disk
) -> None:
    disk.most = 1
    trail = made(path)
    trail.note(judged("a"))
    trail.note(judged("b"))
    assert trail.flush()
    assert targets(path) == ["a", "b"]
    assert path.read_bytes().count(b"\n") == 2


FULL = """
import logging, resource, sys
from agent_kit.policy.judged import Judged
from agent_kit.session.trail import Trail
logging.basicConfig(format="%(name)s %(message)s")
def note(name, count=1):
    for _ in range(count):
        trail.note(Judged(session_id="s", tool="Read", tool_input={"file_path": name}, verdict="allow", lock="gate"))
    assert trail.flush(30)
trail = Trail(sys.argv[1])
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
note("a", 20)
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
note("b")
"""


def run(program: str, *words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, words)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )


def test_a_file_that_the_system_lets_grow_no_further_loses_the_rest_alone(path: Path) -> None:
    said = run(FULL, path).stderr
    found = targets(path)
    kept = found.count("a")
    assert kept > 2
    assert found == ["a"] * kept + [20 - kept, "b"]
    assert said.count("agent_kit.trail decisions are missing") == 1


# The thread


def test_what_waits_is_written_when_the_process_ends(path: Path) -> None:
    run(
        "import sys; from agent_kit.policy.judged import Judged; from agent_kit.session.trail import Trail\n"
        "trails = [Trail(sys.argv[1]), Trail(sys.argv[1])]\n"
        "for number in range(500):\n"
        "    trails[number % 2].note(Judged(session_id='s', tool='Read', verdict='allow', lock='gate'))\n",
        path,
    )
    assert len(list(read_trail(path))) == 500


def test_a_stuck_disk_does_not_keep_the_process_from_ending(path: Path) -> None:
    begin = time.monotonic()
    run(
        "import sys, time; from agent_kit.policy.judged import Judged; from agent_kit.session import trail\n"
        "trail.TrailFile.write = lambda *_: time.sleep(3600)\n"
        "kept = [trail.Trail(sys.argv[1]) for _ in range(3)]\n"
        "[one.note(Judged(session_id='s', tool='Read', verdict='allow', lock='gate')) for one in kept]\n",
        path,
    )
    assert time.monotonic() - begin < 60


def test_an_idle_trail_has_neither_thread_nor_open_file(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trail_module, "_IDLE", 0.01)
    trail = Trail(path)
    for number in range(3):
        trail.note(judged(number))
        for _ in range(1000):
            if trail._thread is None:
                break
            time.sleep(0.01)
        assert trail._thread is None
        held = {os.path.realpath(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd")}
        assert str(path) not in held
    assert targets(path) == ["0", "1", "2"]


def test_a_closed_trail_begins_again_with_the_next_call(path: Path) -> None:
    trail = Trail(path)
    for number in range(3):
        trail.note(judged(number))
        assert trail.close()
        assert trail._thread is None
    assert targets(path) == ["0", "1", "2"]


def test_threads_that_note_at_once_lose_nothing(path: Path, made: Make) -> None:
    trail = made(path)

    def many() -> None:
        for number in range(200):
            trail.note(judged(number))

    threads = [threading.Thread(target=many) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert trail.flush(30)
    assert sorted(targets(path)) == sorted([str(number) for number in range(200)] * 4)


def test_where_no_thread_can_be_had_the_call_goes_on_and_is_counted(
    path: Path, made: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    trail = made(path)
    start = threading.Thread.start

    def fail(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", fail)
    trail.note(judged("lost"))
    begin = time.monotonic()
    assert not trail.flush(60)
    assert time.monotonic() - begin < 30  # there is nothing to wait for
    monkeypatch.setattr(threading.Thread, "start", start)
    trail.note(judged("kept"))
    assert trail.flush()
    assert targets(path) == [1, "kept"]


def test_what_is_no_judged_call_raises_nothing_and_is_counted(path: Path, made: Make) -> None:
    trail = made(path)
    trail.note(None)  # type: ignore[arg-type]
    trail.note(judged("kept"))
    trail.note(object())  # type: ignore[arg-type]
    assert trail.flush()
    assert targets(path) == [1, "kept", 1]


@pytest.mark.parametrize("name", ["max_bytes", "keep"])
@pytest.mark.parametrize(
    ("value", "error"),
    [(0, ValueError), (-1, ValueError), (1.5, TypeError), ("5", TypeError), (True, TypeError)],
)
def test_a_number_of_files_or_bytes_that_makes_no_sense_is_refused(
    path: Path, name: str, value: Any, error: type[Exception]
) -> None:
    with pytest.raises(error, match=name):
        Trail(path, **{name: value})


# Reading


def test_reading_skips_what_is_no_line(path: Path) -> None:
    lines = (
        b'{"a": 1}',
        b"",
        b"{",
        b"[1]",
        b"\xff{}",
        b"\0\0",
        b"[" * 100_000,
        b'{"a": 2}',
        b'{"a',
    )
    path.write_bytes(b"\n".join(lines))
    assert list(read_trail(path)) == [{"a": 1}, {"a": 2}]


def test_reading_goes_from_the_oldest_file_to_the_newest(path: Path) -> None:
    for number in (10, 9, 3, 1):
        path.with_name(f"{path.name}.{number}").write_text(f'{{"a": {number}}}\n')
    path.write_text('{"a": 0}\n')
    for other in (f"{path.name}.x", f"{path.name}.1.gz", f"x{path.name}.2"):
        path.with_name(other).write_text('{"a": "another file"}\n')
    assert [line["a"] for line in read_trail(str(path))] == [10, 9, 3, 1, 0]


def test_a_trail_that_was_never_written_has_no_lines(path: Path) -> None:
    assert list(read_trail(path)) == []


@pytest.mark.parametrize("name", ["typo.jsonl", "missing/s.decisions.jsonl", "missing/file"])
def test_a_file_that_can_be_no_trail_is_an_error(path: Path, name: str) -> None:
    missing = path.parent / name
    with pytest.raises(FileNotFoundError, match=f"there is no trail {missing}: it is <session id>"):
        list(read_trail(missing))


@pytest.mark.parametrize("after", range(4))
def test_a_rotation_while_the_files_are_opened_neither_hides_nor_doubles_a_line(
    path: Path, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = TrailFile(path, max_bytes=1, keep=9)
    for number in range(3):
        file.write(b'{"a": %d}\n' % number)
    opened = itertools.count()

    def opening(*args: Any, **kwargs: Any) -> Any:
        if next(opened) == after:
            file.write(b'{"a": 3}\n')
        return open(*args, **kwargs)

    monkeypatch.setattr(trail_file, "open", opening, raising=False)
    found = [line["a"] for line in read_trail(path)]
    file.close()
    assert found[:3] == [0, 1, 2] and found[3:] in ([], [3])


# The logger


def test_decisions_are_logged_with_their_fields(
    path: Path, made: Make, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "agent_kit.decisions")
    trail = made(path)
    trail.note(judged("a"))
    trail.note(judged("b", verdict="deny", code="outside-scope"))
    trail.note(judged("c", verdict="ask", rule="r", lock="rules", milliseconds=2.5))
    trail.note(judged("d", verdict="defer"))
    assert trail.flush()
    assert [(one.name, one.levelname, one.getMessage()) for one in caplog.records] == [
        ("agent_kit.decisions", "INFO", "allow Read a"),
        ("agent_kit.decisions", "WARNING", "deny Read b"),
        ("agent_kit.decisions", "INFO", "ask Read c"),
        ("agent_kit.decisions", "WARNING", "defer Read d"),
    ]
    third = vars(caplog.records[2])
    assert {name[9:]: value for name, value in third.items() if name.startswith("decision_")} == {
        name: value for name, value in list(read_trail(path))[2].items() if name != "time"
    }


def test_a_host_whose_records_have_such_names_of_their_own_loses_nothing(
    path: Path, made: Make, caplog: pytest.LogCaptureFixture
) -> None:
    kept = logging.getLogRecordFactory()

    def factory(*args: Any, **kwargs: Any) -> logging.LogRecord:
        record = kept(*args, **kwargs)
        record.session = record.tool = record.agent = record.target = "the host's"
        return record

    trail = made(path)
    logging.setLogRecordFactory(factory)
    try:
        trail.note(judged(verdict="deny"))
        assert trail.flush()
    finally:
        logging.setLogRecordFactory(kept)
    assert [vars(one)["session"] for one in caplog.records] == ["the host's"]


def test_nothing_is_made_for_a_logger_whose_level_is_off(
    path: Path, made: Make, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "agent_kit.decisions")
    said: list[Any] = []
    monkeypatch.setattr(trail_module, "_say", said.append)
    trail = made(path)
    trail.note(judged("a"))
    trail.note(judged("b", verdict="deny"))
    assert trail.flush()
    assert [fields["target"] for fields in said] == ["b"]


def test_a_logging_handler_has_the_callers_context_and_does_not_hold_it_up(
    path: Path, made: Make
) -> None:
    request = contextvars.ContextVar("request", default="none")
    free, seen = threading.Event(), []

    class Slow(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            assert free.wait(60)
            seen.append(request.get())

    logger, handler = logging.getLogger("agent_kit.decisions"), Slow()
    logger.addHandler(handler)
    trail = made(path)
    try:
        for number in range(3):
            request.set(f"r{number}")
            trail.note(judged(verdict="deny"))
        assert not trail.flush(0.01)
        free.set()
        assert trail.flush()
    finally:
        free.set()
        logger.removeHandler(handler)
    assert seen == ["r0", "r1", "r2"]


def test_a_logging_filter_that_throws_costs_no_line(path: Path, made: Make) -> None:
    def throw(record: logging.LogRecord) -> bool:
        raise RuntimeError("no")

    logger = logging.getLogger("agent_kit.decisions")
    logger.addFilter(throw)
    trail = made(path)
    try:
        trail.note(judged("a", verdict="deny"))
        trail.note(judged("b", verdict="deny"))
        assert trail.flush()
    finally:
        logger.removeFilter(throw)
    assert targets(path) == ["a", "b"]


def test_decisions_are_not_printed_where_nobody_set_up_logging(path: Path) -> None:
    done = run(
        "import sys; from agent_kit.policy.judged import Judged; from agent_kit.session.trail import Trail\n"
        "Trail(sys.argv[1]).note(Judged(session_id='s', tool='Read', verdict='deny', lock='gate'))\n",
        path,
    )
    assert (done.stdout, done.stderr) == ("", "")


# The span


class Span(NonRecordingSpan):
    """A span that records, of the API alone."""

    def __init__(self) -> None:
        super().__init__(INVALID_SPAN_CONTEXT)
        self.events: list[tuple[str, Any]] = []

    def is_recording(self) -> bool:
        return True

    def add_event(self, name: str, attributes: Any = None, timestamp: int | None = None) -> None:
        self.events.append((name, attributes))


def test_the_callers_span_gets_an_event_without_the_target(path: Path, made: Make) -> None:
    trail, span = made(path), Span()
    with trace.use_span(span):
        trail.note(judged("the target", verdict="deny", code="denied", rule="r", milliseconds=2))
    trail.note(judged("outside the span"))
    assert span.events == [
        (
            "agent_kit.decision",
            {
                "agent_kit.tool": "Read",
                "agent_kit.verdict": "deny",
                "agent_kit.code": "denied",
                "agent_kit.lock": "gate",
                "agent_kit.rule": "r",
                "agent_kit.ms": 2.0,
                "agent_kit.asked": False,
            },
        )
    ]


def test_a_span_that_throws_costs_no_line(path: Path, made: Make) -> None:
    class Broken(Span):
        def add_event(self, *args: Any, **kwargs: Any) -> None:
            raise RuntimeError("no")

    trail = made(path)
    with trace.use_span(Broken()):
        trail.note(judged("kept"))
    assert trail.flush()
    assert targets(path) == ["kept"]


def test_the_sdks_span_gets_an_event(path: Path, made: Make) -> None:
    sdk = pytest.importorskip("opentelemetry.sdk.trace")
    export = pytest.importorskip("opentelemetry.sdk.trace.export")
    memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
    exported = memory.InMemorySpanExporter()
    provider = sdk.TracerProvider()
    provider.add_span_processor(export.SimpleSpanProcessor(exported))
    trail = made(path)
    with provider.get_tracer("host").start_as_current_span("turn"):
        trail.note(judged("the target", rule="\ud800"))  # what no exporter could encode
    provider.shutdown()
    (event,) = exported.get_finished_spans()[0].events
    assert event.name == "agent_kit.decision"
    assert dict(event.attributes) == {
        "agent_kit.tool": "Read",
        "agent_kit.verdict": "allow",
        "agent_kit.lock": "gate",
        "agent_kit.rule": r"\ud800",
        "agent_kit.ms": 0.0,
        "agent_kit.asked": False,
    }


def test_opentelemetry_is_not_loaded_for_it(path: Path) -> None:
    done = run(
        "import sys; from agent_kit.policy.judged import Judged; from agent_kit.session.trail import Trail\n"
        "Trail(sys.argv[1]).note(Judged(session_id='s', tool='Read', verdict='deny', lock='gate'))\n"
        "print([name for name in sys.modules if 'opentelemetry' in name])\n",
        path,
    )
    assert done.stdout == "[]\n"


# All three


def test_neither_content_nor_keys_are_in_the_file_the_log_or_the_span(
    path: Path, made: Make, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "agent_kit.decisions")
    trail, span = made(path), Span()
    edit = {"old_string": CONTENT, "new_string": CONTENT}
    calls: list[tuple[str, dict[str, Any]]] = [
        ("Write", {"file_path": f"/work/{KEY}", "content": CONTENT}),
        ("Edit", {"file_path": "a", **edit}),
        ("MultiEdit", {"file_path": "a", "edits": [edit]}),
        ("NotebookEdit", {"notebook_path": "a", "new_source": CONTENT}),
        ("Bash", {"command": f"KEY={KEY} cat <<EOF > f\n{CONTENT}\nEOF\n"}),
        ("mcp__files__write", {"path": "a", "text": CONTENT, "api_key": KEY, "by": [KEY]}),
    ]
    with trace.use_span(span):
        for tool, given in calls:
            for verdict in ("allow", "deny"):
                trail.note(judged(tool=tool, tool_input=given, verdict=verdict, rule=f"r {KEY}"))
    assert trail.flush()
    told = path.read_text() + str([vars(one) for one in caplog.records]) + str(span.events)
    assert (len(caplog.records), len(span.events), told.count("[secret]") > 30) == (12, 12, True)
    assert CONTENT not in told and KEY not in told and KEY[10:] not in told

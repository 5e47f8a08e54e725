"""Tools, paging, denied paths and folder options: what the extensions stand on."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_kit.scope import ConfigError
from agent_kit.store import (
    PAGE_SIZE,
    StoreCode,
    StoreError,
    Tool,
    cut,
    fill,
    folder_label,
    folder_of,
    made_folder,
    option_fault,
    permits_for,
    sentence_for,
)
from agent_kit.store.tools import integer, schema, text


def tool(run: Any) -> Tool:
    return Tool(name="probe", description="d", schema=schema(), run=run, read_only=True)


def raising(error: BaseException) -> Any:
    def run(_arguments: object) -> tuple[str, ...]:
        raise error

    return run


ERRORS = [
    (StoreError("Do this.", code=StoreCode.STALE), "Do this."),
    (OSError(errno.ENOSPC, "No space left", "/srv/secret"), "The disk is full"),
    (OSError(errno.EACCES, "Permission denied", "/srv/secret"), "permissions don't allow"),
    (OSError(errno.EIO, "Input/output error", "/srv/secret"), "The disk refused (EIO)"),
    (OSError("/srv/secret"), "The disk refused (unknown)"),
    (KeyError("/srv/secret"), "probe failed (KeyError)"),
    (RecursionError("/srv/secret"), "probe failed (RecursionError)"),
]


@pytest.mark.parametrize(("error", "sentence"), ERRORS)
async def test_an_error_is_a_sentence_without_the_hosts_paths(
    error: Exception, sentence: str
) -> None:
    result = await tool(raising(error)).handler({})
    (block,) = result["content"]
    assert result["is_error"]
    assert sentence in block["text"]
    assert "secret" not in block["text"]


def test_a_refusals_details_follow_its_sentence() -> None:
    error = StoreError("No.", code=StoreCode.STALE, details=("id: x", "text"))
    result = tool(raising(error)).call({})
    assert [block["text"] for block in result["content"]] == ["No.", "id: x", "text"]


def test_a_result_that_json_cant_carry_is_spelled_out() -> None:
    result = tool(lambda _: ("a\udcffb",)).call({})
    assert result["content"] == [{"type": "text", "text": "a\\udcffb"}]


async def test_a_slow_tool_does_not_hold_up_the_event_loop() -> None:
    release = threading.Event()

    def run(_arguments: object) -> tuple[str, ...]:
        release.wait(5)
        return ("done",)

    call = asyncio.create_task(tool(run).handler({}))
    started = time.monotonic()
    await asyncio.sleep(0.01)
    assert time.monotonic() - started < 2
    release.set()
    assert not (await call)["is_error"]


@given(st.text(max_size=200), st.integers(1, 50))
def test_the_parts_of_a_text_are_the_text(whole: str, size: int) -> None:
    parts, offset = [], 0
    while True:
        part = cut(whole, offset, size=size)
        assert len(part.text) <= size
        parts.append(part.text)
        if part.next_offset is None:
            break
        offset = part.next_offset
    assert "".join(parts) == whole


@pytest.mark.parametrize(("whole", "offset"), [("abc", 3), ("abc", -1), ("", 1)])
def test_an_offset_past_the_end_is_said_so(whole: str, offset: int) -> None:
    with pytest.raises(StoreError, match=f"offset {offset}"):
        cut(whole, offset)


@given(st.lists(st.text(alphabet="ab", max_size=30)))
def test_lines_are_filled_up_to_the_size_and_never_none(lines: list[str]) -> None:
    kept, complete = fill(iter(lines), size=60)
    assert list(kept) == lines[: len(kept)]
    assert complete == (len(kept) == len(lines))
    assert bool(kept) == bool(lines)
    assert len(kept) <= 1 or sum(len(line) + 1 for line in kept) <= 60


def test_lines_that_do_not_fit_are_not_made() -> None:
    made = []

    def lines() -> Any:
        for number in range(1000):
            made.append(number)
            yield "x" * 1000

    kept, complete = fill(lines())
    assert (len(kept), complete, len(made)) == (PAGE_SIZE // 1001, False, PAGE_SIZE // 1001 + 1)


def test_a_schema_names_its_fields_and_takes_no_others() -> None:
    made = schema(("a",), a=text("A.", choices=("x",)), b=integer("B.", most=3))
    assert made == {
        "type": "object",
        "properties": {
            "a": {"type": "string", "description": "A.", "enum": ["x"]},
            "b": {"type": "integer", "description": "B.", "minimum": 0, "maximum": 3},
        },
        "required": ["a"],
        "additionalProperties": False,
    }


def test_every_error_number_has_a_sentence_without_a_path() -> None:
    for number in errno.errorcode:
        sentence = sentence_for(OSError(number, os.strerror(number), "/srv/secret"))
        assert "secret" not in sentence
        assert sentence.endswith(".")


# Denied paths


@pytest.mark.parametrize(
    ("denied", "name", "may"),
    [
        ((), "a.md", True),
        (("base/a.md",), "a.md", False),
        (("base/a.md",), "A.MD", False),
        (("base/a.md",), "b.md", True),
        (("**/*.key",), "x.key", False),
        (("base/closed",), "closed/deep/x.md", False),
        (("base/a.md",), "hard.md", False),
        ((), "to-outside.md", False),
        (("base/a.md",), "to-a.md", False),
        ((), "to-a.md", True),
    ],
)
def test_a_tool_may_open_what_read_may(
    tmp_path: Path, denied: tuple[str, ...], name: str, may: bool
) -> None:
    base = tmp_path / "base"
    base.mkdir()
    (base / "a.md").write_text("x")
    (base / "hard.md").hardlink_to(base / "a.md")
    (base / "to-a.md").symlink_to("a.md")
    (base / "to-outside.md").symlink_to(tmp_path / "out.md")
    permits = permits_for(base, project_dir=tmp_path, denied_paths=denied)
    assert permits(base / name) is may


# Folder options


def test_a_folder_is_relative_to_the_project_and_home_is_expanded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    config = SimpleNamespace(where="w")
    rows = [
        ("a/b", tmp_path / "a/b"),
        (Path("a"), tmp_path / "a"),
        ("~/n", tmp_path / "home/n"),
        ("/abs", Path("/abs")),
        ("../up", tmp_path.parent / "up"),
        (lambda c: c.where, tmp_path / "w"),
    ]
    for option, expected in rows:
        found = folder_of(option, config=config, project_dir=tmp_path, field="x.dir")  # type: ignore[arg-type]
        assert found == expected


@pytest.mark.parametrize("value", [None, 3, "", "  ", "a\0b", b"a", ["a"]])
def test_what_is_no_folder_is_a_fault_given_or_made(tmp_path: Path, value: Any) -> None:
    fault = option_fault(value, field="x.dir")
    assert fault is not None
    assert (fault.field, fault.value) == ("x.dir", value)
    with pytest.raises(ConfigError):
        folder_of(lambda _: value, config=None, project_dir=tmp_path, field="x.dir")


def test_a_folder_is_named_relative_inside_the_project_alone(tmp_path: Path) -> None:
    assert folder_label(tmp_path / "a/b", project_dir=tmp_path) == "a/b/"
    assert folder_label(tmp_path, project_dir=tmp_path) == "./"
    assert folder_label(Path("/else"), project_dir=tmp_path) == "/else/"


def test_a_folder_that_cant_be_made_is_a_fault_with_its_field(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(ConfigError) as caught:
            made_folder(folder, field="x.dir")
        assert [fault.field for fault in caught.value.faults] == ["x.dir"]

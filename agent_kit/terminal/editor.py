"""A text in the person's own editor."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from agent_kit.terminal.device import TICK, Device, Withdrawn

__all__ = ["NotEdited", "edit_text", "editor_command", "read_input"]

_PATIENCE = 2.0  # seconds that an editor has to end


class NotEdited(Exception):
    """There is no new input; the text says why, and is shown to the person."""


def editor_command() -> str | None:
    """The editor that the person has chosen, with its arguments."""
    chosen = (os.environ.get(name, "").strip() for name in ("VISUAL", "EDITOR"))
    return next(filter(None, chosen), None)


def edit_text(text: str, command: str, device: Device, withdrawn: Callable[[], bool]) -> str:
    """``text`` as it is once ``command`` has ended, edited in a file that only this user can read.

    Raises NotEdited, and Withdrawn once the question is: the editor is ended then.
    """
    with tempfile.TemporaryDirectory(prefix="agent-kit-", ignore_cleanup_errors=True) as folder:
        path = os.path.join(folder, "input.json")
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(text.encode("utf-8"))
        _run(command, path, device, withdrawn)
        try:
            with open(path, encoding="utf-8-sig") as file_:
                return file_.read()
        except (OSError, UnicodeDecodeError) as error:
            raise NotEdited(f"The edited file can't be read: {error}.") from error


def read_input(text: str) -> dict[str, Any]:
    """The input of a tool that a person wrote as JSON. Raises NotEdited for anything else."""
    try:
        value = json.loads(text, parse_constant=_no_number, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise NotEdited(f"This is no JSON: {error}.") from error
    if not isinstance(value, dict):
        raise NotEdited('An input is a JSON object: {"name": value, ...}.')
    return value


def _run(command: str, path: str, device: Device, withdrawn: Callable[[], bool]) -> None:
    try:
        words = [*shlex.split(command), path]
    except ValueError as error:
        raise NotEdited(f"The editor's command can't be read: {error}.") from error
    with device.lent() as (reading, writing):
        try:
            editor = subprocess.Popen(words, stdin=reading, stdout=writing, stderr=writing)  # noqa: S603
        except (OSError, ValueError) as error:
            raise NotEdited(f"The editor can't be started: {error}.") from error
        try:
            status = _ended(editor, withdrawn)
        finally:
            _end(editor)
    if status != 0:
        raise NotEdited(f"The editor ended with status {status}: nothing is changed.")


def _ended(editor: subprocess.Popen[bytes], withdrawn: Callable[[], bool]) -> int:
    while not withdrawn():
        with suppress(subprocess.TimeoutExpired):
            return editor.wait(TICK)
    raise Withdrawn


def _end(editor: subprocess.Popen[bytes]) -> None:
    if editor.poll() is not None:
        return
    editor.terminate()
    try:
        editor.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        editor.kill()
        editor.wait()


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice in one object")
    return found

"""Where an extension's folder lies: a path, or a function of the session's configuration."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agent_kit.scope import ConfigError, Fault

__all__ = ["FolderOption", "folder_label", "folder_of", "made_folder", "option_fault"]

FolderOption = str | os.PathLike[str] | Callable[[Any], str | os.PathLike[str]]
"""A path, relative to the project, or a function of the session's configuration that gives one."""


def option_fault(value: object, *, field: str) -> Fault | None:
    """What is wrong with a folder option, before any session is known."""
    return None if callable(value) else _path_fault(value, field)


def _path_fault(value: object, field: str) -> Fault | None:
    text = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(text, str) or not text.strip() or "\0" in text:
        remedy = "name a folder, as text or a path, or give a function of the configuration."
        return Fault(field=field, value=value, remedy=remedy)
    return None


def folder_of(
    option: FolderOption, *, config: Any, project_dir: Path, field: str, home: Path | None = None
) -> Path:
    """The folder's absolute path; ``~`` is ``home`` (default: the process's), links are kept.

    Raises ``ConfigError`` when a function gives something that is no path.
    """
    value = option(config) if callable(option) else option
    if fault := _path_fault(value, field):
        raise ConfigError([fault])
    text = os.fspath(value)
    if text == "~" or text.startswith("~/"):
        text = f"{home or Path.home()}{text[1:]}"
    return Path(os.path.abspath(project_dir / text))


def folder_label(folder: Path, *, project_dir: Path) -> str:
    """How the folder is named to the model: relative inside the project, absolute outside."""
    try:
        inside = folder.relative_to(project_dir)
    except ValueError:
        return f"{folder}/"
    return f"{inside}/" if inside.parts else "./"


def made_folder(folder: Path, *, field: str, private: bool = False) -> Path:
    """The folder, made with its parents when it isn't there; ``private`` for its owner alone.

    Raises ``ConfigError`` when it can't be made or is a file.
    """
    try:
        folder.mkdir(mode=0o700 if private else 0o777, parents=True, exist_ok=True)
    except OSError as error:
        remedy = f"this folder can't be made ({error.strerror}): name another, or make it."
        raise ConfigError([Fault(field=field, value=str(folder), remedy=remedy)]) from error
    return folder

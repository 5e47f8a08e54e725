"""Where the code lies that runs the agent, now or next time: whoever could write it could open the locks."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from agent_kit.confine.programs import on_path
from agent_kit.sdk.locations import bundled_cli
from agent_kit.session.config import SessionConfig
from agent_kit.session.paths import absolute, inside, resolved
from agent_kit.session.spec import AgentSpec

__all__ = ["Code", "code_paths"]

_MANY: Final = 20  # loaded files of one folder; more stand for the folder
# Of what a server's command line names, what is a program by its name. A database, say, is none.
_PROGRAMS: Final = re.compile(
    r"\.(bash|bat|[cm]?[jt]sx?|cmd|exe|jar|lua|php|pl|ps1|pyw?|pyz|rb?|sh|wasm|zsh)", re.IGNORECASE
)
_DATA: Final = re.compile(r"\.(csv|db|duckdb|log|sqlite3?)", re.IGNORECASE)
_WORDS: Final = re.compile(r"[^\s;&|()<>\"'`]+")  # of a shell's line


@dataclass(frozen=True, slots=True)
class Code:
    """``path`` is absolute. ``session``: it is what a session is started with, not the host.

    ``whole``: a folder in it may not be written, either.
    """

    what: str
    path: str
    session: bool = False
    whole: bool = False


def code_paths(
    spec: AgentSpec,
    config: SessionConfig,
    servers: Mapping[str, Any],
    project: Path,
    home: Path,
    writable: Sequence[str],
) -> tuple[Code, ...]:
    """What the host runs, and what it starts a session with. ``servers`` are the session's.

    Of the modules that are loaded, those in the ``writable`` folders, which are resolved.
    """
    return (
        *_program(spec),
        *_loaded(writable),
        *_plugins(spec, project, home),
        *_cli(config, project, home),
        *_servers(config, servers, project, home),
        *(Code("what the options were read from", path, True) for path in spec._read_from),
    )


# --- the program ------------------------------------------------------------------------------


def _program(spec: AgentSpec) -> Iterator[Code]:
    yield Code("agent-kit itself", str(Path(__file__).parents[1]))
    yield Code("the Python interpreter", sys.prefix)
    yield Code("the Python that its environment stands on", sys.base_prefix)
    for extension in spec.extensions:
        module = sys.modules.get(type(extension).__module__)
        if (file := getattr(module, "__file__", None)) is not None:
            yield Code(f"the extension {extension.name}", os.path.dirname(file))
    if spec._defined_in is not None:
        yield Code("the module that defines the spec", spec._defined_in)


def _loaded(writable: Sequence[str]) -> Iterator[Code]:
    """The modules of this process: its next run loads them again.

    Where there are many, the folder of their package, or else their own, stands for them.
    """
    groups: dict[str, dict[str, str]] = {}
    counts: dict[str, bool] = {}  # the folders, most of which have many modules
    for name, module in list(sys.modules.items()):
        real, folder = _place(_file(module))
        if folder not in counts:
            counts[folder] = any(inside(folder, each) for each in writable)
        if counts[folder]:
            groups.setdefault(_group(name, real), {})[real] = name
    for package, files in groups.items():
        if len(files) > _MANY and not any(inside(each, resolved(package)) for each in writable):
            yield Code("modules that the program has loaded", package)
            continue
        yield from (Code(f"the loaded module {name}", file) for file, name in files.items())
        kept = {os.path.join(os.path.dirname(file), "__pycache__") for file in files}
        yield from (Code("their bytecode", each) for each in sorted(kept) if os.path.isdir(each))
    if sys.pycache_prefix is not None:
        yield Code("the bytecode of modules", os.path.abspath(sys.pycache_prefix))


def _file(module: object) -> str:
    """The file of a module, ``""`` for none. Loads nothing that waits to be loaded."""
    try:
        file = object.__getattribute__(module, "__dict__").get("__file__")
    except AttributeError:
        return ""
    return file if isinstance(file, str) else ""


@cache
def _place(file: str) -> tuple[str, str]:
    """A file, links resolved, and its folder as folders are compared."""
    if not file:
        return "", ""
    real = _real(os.path.abspath(file))
    return real, _folded(os.path.dirname(real))


@cache
def _real(path: str) -> str:
    """An absolute path, links resolved: of many in few folders each folder is looked at once."""
    folder, name = os.path.split(path)
    if not name:
        return path
    path = os.path.join(_real(folder), name)
    return os.path.realpath(path) if os.path.islink(path) else path


_folded = cache(resolved)


def _group(name: str, real: str) -> str:
    """The folder of the package that a file belongs to, or the one that it lies in."""
    top, _ = _place(_file(sys.modules.get(name.partition(".")[0])))
    package, own = os.path.split(top)
    return (
        package if own.startswith("__init__.") and inside(real, package) else os.path.dirname(real)
    )


# --- what a session is started with -----------------------------------------------------------


def _plugins(spec: AgentSpec, project: Path, home: Path) -> Iterator[Code]:
    for folder in spec.plugins:
        yield Code(f"the plugin {folder}", str(absolute(folder, project, home)), True, True)
    for extension in spec.extensions:
        if isinstance(own := extension.plugin_dir, (str, Path)):
            yield Code(f"the plugin of {extension.name}", os.path.abspath(own), True, True)


def _cli(config: SessionConfig, project: Path, home: Path) -> Iterator[Code]:
    given = config.cli_path and str(absolute(config.cli_path, project, home))
    if program := given or bundled_cli():
        yield Code("the CLI", program, True)


def _servers(
    config: SessionConfig, servers: Mapping[str, Any], project: Path, home: Path
) -> Iterator[Code]:
    path = {**os.environ, **config.env}.get("PATH")
    for name, server in servers.items():
        if not isinstance(server, Mapping):
            continue  # made when the session is
        command, words = server.get("command"), server.get("args")
        words = words if isinstance(words, (list, tuple)) else ()  # else the CLI says so
        if isinstance(command, str) and "\0" not in command:
            where = str(absolute(command, project, home)) if os.sep in command else command
            if (program := on_path(where, path)) is not None:
                yield Code(f"the program of the server {name}", program, True)
        for file in _named_files([word for word in words if isinstance(word, str)], project):
            yield Code(f"a file that the server {name} is started with", file, True)


def _named_files(words: Sequence[str], project: Path) -> Iterator[str]:
    """Of the files that a command line names, the first one, and what is a program."""
    found = {file: os.path.splitext(file)[1] for file in _files_named(words, project)}
    first = next((file for file, ending in found.items() if not _DATA.fullmatch(ending)), None)
    for file, ending in found.items():
        if file == first or _PROGRAMS.fullmatch(ending) or os.access(file, os.X_OK):
            yield file


def _files_named(words: Sequence[str], project: Path) -> Iterator[str]:
    for at, word in enumerate(words):
        if "\0" in word:
            continue
        texts: Collection[str] = (word, word.partition("=")[2], *_WORDS.findall(word))
        if at and words[at - 1] == "-m":  # a module of the project
            texts = [f"{word.replace('.', '/')}{end}" for end in (".py", "/__main__.py")]
        for text in filter(None, texts):
            if os.path.isfile(path := os.path.normpath(project / text)):
                yield path

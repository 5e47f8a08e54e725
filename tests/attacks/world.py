"""A world full of closed files, sessions in it that only the kernel holds, and its checksum."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import shutil
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, PermissionResultAllow

from agent_kit import AgentSpec, SessionConfig, ToolOnlyDir, build_session_options
from agent_kit.extension import Contribution
from agent_kit.testing import SessionRun, ToolCall, run_session, tree
from tests.attacks.ways import Way

__all__ = ["BACKENDS", "CLOSED", "KEYS", "OPEN", "World", "bash", "leaks", "there", "told", "tried"]

BACKENDS = ("bubblewrap", "landlock")
KEYS = ("sk-ant-canary(realkey)", "sk-made-up")  # the session's, and what the test's own env has
OPEN = "canary(open)"
CLOSED = {
    "outside": "out/secret.txt",
    "project": "course/README.md",
    "denied": "course/sources/.env",
    "deniedfolder": "course/sources/keys/exam.pem",
    "toolsonly": "course/knowledge/index.md",
    "home": "home/.ssh/id_ed25519",
    "hardlink": "course/sources/twin.md",
}
NOTEBOOK = (
    '{"cells": [{"cell_type": "code", "id": "a", "metadata": {}, "outputs": [],'
    ' "execution_count": null, "source": ["canary(%s)"]}], "metadata": {}, "nbformat": 4,'
    ' "nbformat_minor": 5}'
)
TOOLS = ("Bash", "Read", "Edit", "Write", "Glob", "Grep", "NotebookEdit", "Agent", "Skill")
CLOSED_INSIDE = ("course/notes/.env", "course/notes/twin.md", "course/notes/sub/.env")
_CANARY = re.compile(r"canary\([a-z]+\)")
_FILES = (
    *(f"{path}=canary({key})" for key, path in CLOSED.items() if key != "hardlink"),
    "course/sources/twin.md == course/knowledge/index.md",
    f"course/sources/a.md={OPEN}",
    "course/drafts/d.md=d",
    # what every way is tried on as well, so that it is seen to be one
    f"course/drafts/open/o.txt={OPEN}",
    "course/drafts/open/canary(openname).txt=",
    # names that are canaries, beside the closed files
    "out/canary(outname).txt=",
    "course/canary(projectname).md=",
    "course/private/p.md=canary(private)",
    "course/sources/keys/canary(keyname).pem=",
    "course/knowledge/canary(pagename).md=",
    "home/.ssh/canary(sshname)=",
    # links made beforehand
    "course/sources/link.md => ../../out/secret.txt",
    "course/sources/folder => ../../out",
    "course/drafts/link.md => ../../out/secret.txt",
    "course/drafts/folder => ../../out",
    "course/drafts/up => ../..",
    "course/drafts/loop => .",
    "course/notes/root => /",
    # a writable folder with a closed file, and with a second name of one
    "course/notes/.env=canary(deniedinside)",
    "course/notes/twin.md == course/sources/.env",
    "course/notes/sub/.env=canary(deniedinside)",
    "course/notes/sub/s.md=s",
    "home/.claude/projects/",
    f"out/book.ipynb={NOTEBOOK % 'notebook'}",
    "out/d.pdf=%PDF-1.4\n% canary(pdf)\n1 0 obj<</Type/Catalog>>endobj\n%%EOF\n",
)


@dataclass(frozen=True)
class Store:
    """An extension with a tools-only folder."""

    name: str = "store"
    plugin_dir: None = None
    provides: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()

    def missing(self, _context: object, /) -> None:
        return None

    def contribute(self, _context: object, /) -> Contribution:
        return Contribution(tool_only_dirs=(ToolOnlyDir(dir="knowledge", instead="its tools"),))


class World:
    """``course`` is the project; ``sources`` in it can be read, ``drafts`` can be written."""

    def __init__(self, root: Path, more: Iterable[str] = ()) -> None:
        self.root = tree(root, [*_FILES, *more])
        self.course = root / "course"
        self.drafts = root / "course/drafts"
        self.home = root / "home"

    def options(self, *, spec: Any = {}, **config: Any) -> ClaudeAgentOptions:
        """The kit's session with every lock but the kernel's taken off again."""
        session = SessionConfig(
            project_dir=self.course,
            run_dir=self.root / "run",
            extra_readable_dirs=["sources"],
            extra_writable_dirs=["drafts", "notes"],
            denied_paths=["**/.env", "sources/keys"],
            env={"HOME": str(self.home), "ANTHROPIC_API_KEY": KEYS[0]},
            prompt_mentions="any",
            **config,
        )
        agent = AgentSpec(name="attacked", tools=["Bash"], extensions=[Store()], **spec)
        return _unlocked(build_session_options(agent, session))

    def confined(self, backend: str, **config: Any) -> ClaudeAgentOptions:
        tools = config.pop("confined_tools", ["python3"])
        return self.options(
            confinement="required", confinement_backend=backend, confined_tools=tools, **config
        )

    def unconfined(self, **config: Any) -> ClaudeAgentOptions:
        return self.options(confinement="off", allow_unconfined_commands=True, **config)

    def run(
        self,
        options: ClaudeAgentOptions,
        calls: Sequence[ToolCall] = (),
        *,
        at_once: int = 32,
        **more: Any,
    ) -> SessionRun:
        starts = range(0, len(calls), at_once)
        batches: list[Any] = [tuple(calls[at : at + at_once]) for at in starts]
        script = [*batches, "Done."]
        run = asyncio.run(run_session(options, script, home=self.home, timeout=280, **more))
        assert run.unplayed == ()
        return run

    def paths(self, keys: Iterable[str] = CLOSED) -> list[str]:
        return [str(self.root / CLOSED[key]) for key in keys]

    def checksum(self, *, but: Iterable[str] = ()) -> dict[str, str]:
        """Every name outside the writable folders, and what it is: contents, mode, owner, links, time.

        Not the run folder, nor the transcripts, which the host writes, nor what ``but`` names.
        """
        skipped = {"course/drafts", "course/notes", "run", "home/.claude/projects", *but}
        found = dict(_states(self.root, {str(self.root / each) for each in skipped}))
        for each in CLOSED_INSIDE:
            found[each] = repr((self.root / each).stat()[:6]) + (self.root / each).read_text()
        return found

    def states(self, folder: Path) -> dict[str, str]:
        """The same of one folder."""
        return dict(_states(folder, set()))


def _unlocked(options: ClaudeAgentOptions) -> ClaudeAgentOptions:
    """Without hooks, rules and pins: what is left of the settings takes the CLI to the broker."""
    given = options.settings or "{}"
    file = None if given.startswith("{") else Path(given)
    settings = json.loads(file.read_text() if file else given)
    text = json.dumps({"env": settings.get("env", {}), "permissions": {"allow": list(TOOLS)}})
    if file:
        file.write_text(text)

    async def allow(*_: object) -> PermissionResultAllow:
        return PermissionResultAllow()

    return replace(
        options,
        tools=list(TOOLS),
        hooks={},
        can_use_tool=allow,
        settings=str(file) if file else text,
        skills=None,
        allowed_tools=[],
        disallowed_tools=[],
    )


def _states(folder: Path, skipped: set[str]) -> Iterator[tuple[str, str]]:
    for entry in sorted(os.scandir(folder), key=lambda each: each.name):
        if entry.path in skipped:
            continue
        found = os.lstat(entry.path)
        facts: list[object] = [found.st_mode, found.st_uid, found.st_gid]
        if stat.S_ISLNK(found.st_mode):
            facts.append(os.readlink(entry.path))
        elif stat.S_ISREG(found.st_mode):
            facts += [
                found.st_nlink,
                found.st_mtime_ns,
                hashlib.sha256(Path(entry.path).read_bytes()).hexdigest(),
            ]
        elif stat.S_ISDIR(found.st_mode) and not entry.path.endswith("/.claude"):
            facts.append(found.st_mtime_ns)
        yield entry.path, repr(facts)
        if stat.S_ISDIR(found.st_mode):
            yield from _states(Path(entry.path), skipped)


def bash(command: str) -> ToolCall:
    return ToolCall("Bash", {"command": command, "timeout": 60_000})


# One call tries several ways. Of what each prints, canaries, keys and marks are told: no output is
# too long then, and none is shortened.
_TELL = r"grep -aohE 'canary\([a-z]*\)|reached\([a-z]*\)|sk-mad[e]-up' drafts/o.$W | sort -u"
_TRY = f"""\
export P D N CLI=$PPID
try() {{
n=0; for P in "$@"; do n=$((n + 1)); D=$(dirname "$P"); N=drafts/n$W-$n; way 2>&1 < /dev/null; done > drafts/o.$W
echo "way $W:" $({_TELL})
}}
"""
_AT_ONCE = 8


def tried(ways: Sequence[Way], paths: Sequence[str], controls: Sequence[str]) -> list[ToolCall]:
    """Calls that try each way on its open file, and then on some of the closed paths.

    Each takes the next ones, so that every path meets every kind of way. ``controls`` has one open
    file a way.
    """
    found = []
    for number, (way, control) in enumerate(zip(ways, controls, strict=True)):
        most = 2 if way.heavy else 4
        chosen = [paths[(number + at) % len(paths)] for at in range(min(most, len(paths)))]
        words = " ".join([control, *chosen])
        found.append(f"W={number}; way() {{ (\n{way.command}\n) }}; try {words}\n")
    packs = [found[at : at + _AT_ONCE] for at in range(0, len(found), _AT_ONCE)]
    return [bash(_TRY + "".join(pack)) for pack in packs]


def told(run: SessionRun, ways: Sequence[Way]) -> dict[Way, str]:
    """What each way told, in a run of the calls of :func:`tried`. A way that told nothing is there."""
    text = "\n".join(call.result or "" for call in run.calls)
    found = {
        int(number): words for number, words in re.findall(r"^way (\d+):(.*)$", text, re.MULTILINE)
    }
    missing = [way.command for number, way in enumerate(ways) if number not in found]
    assert missing == [], text[-2000:]
    return {way: found[number] for number, way in enumerate(ways)}


def there(ways: Iterable[Way]) -> list[Way]:
    """Those whose program this machine has."""
    return [way for way in ways if not way.needs or shutil.which(way.needs)]


def leaks(run: SessionRun) -> list[str]:
    """What the model was told of closed things and of keys, each with the command that told it."""
    found = [(words, "") for request in run.requests for words in _secret(request.text)]
    found += [
        (words, str(call.input)[-300:])
        for call in run.calls
        for words in _secret(call.result or "")
    ]
    named = {words for words, command in found if command}
    seen = [f"{words}: {command}" for words, command in found if command or words not in named]
    hidden = [key for key in (*CLOSED, *_ENCODED) if key != "hardlink" and _hides(run, key)]
    return sorted({*seen, *hidden})


_ENCODED = ("notebook", "pdf", "deniedinside")


def _hides(run: SessionRun, key: str) -> bool:
    texts = (request for request in run.requests if '"type":"base64"' in request.text)
    return any(request.saw(f"canary({key})") for request in texts)


def _secret(text: str) -> set[str]:
    found = {each for each in _CANARY.findall(text) if not each.startswith("canary(open")}
    return found | {key for key in KEYS if key in text}

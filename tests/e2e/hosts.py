"""A host of a session as a process of its own: of another user, in a world of its own, to be killed.

Imported, it gives :class:`World`. Run as a program, it is the host: ``python hosts.py FILE`` reads
what to do from a JSON file and writes what happened beside it.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
ANYBODY: Final = 54_321  # a user and a group that no machine has
_PATHS: Final = (str(ROOT), str(ROOT / "extensions"))
_NEW_MOUNTS, _NEW_USERS = 0x20000, 0x10000000  # CLONE_NEWNS, CLONE_NEWUSER
_DUMPABLE: Final = 4  # PR_SET_DUMPABLE
_BIND, _ALL, _PRIVATE = 4096, 16384, 1 << 18  # MS_BIND, MS_REC, MS_PRIVATE

FILES: Final = (
    "a course/sources/syllabus.md=canary(syllabus)",
    "a course/sources/.env=canary(env)",
    "a course/drafts/note.md=old",
    "home/.claude/settings.json={}",
)


class World:
    """A course project, a home, and the sessions on it. ``user`` is whom the hosts run as."""

    def __init__(self, root: Path, user: int) -> None:
        self.root = root
        self.user = user
        self.project = root / "a course"
        self.drafts = self.project / "drafts"
        self.home = root / "home"
        self.temporary = Path("/var/tmp") / root.name  # below /tmp is no place for a session's own
        self.hosts: list[Host] = []

    def own(self, path: Path | None = None) -> None:
        """Everything belongs to the user."""
        if os.getuid() == 0:
            for here, folders, files in os.walk(path or self.root):
                for name in (".", *folders, *files):
                    os.chown(os.path.join(here, name), self.user, self.user, follow_symlinks=False)

    def session_folder(self, session: str) -> Path:
        """The session's own folder."""
        return self.temporary / f"agent-kit-{self.user}" / session

    def begin(
        self,
        *calls: tuple[str, Mapping[str, Any]],
        backend: str | None = None,
        what: str = "session",
        no_namespaces: bool = False,
        no_landlock: bool = False,
        env: Mapping[str, str] | None = None,
        spec: Mapping[str, Any] | None = None,
        **config: Any,
    ) -> Host:
        """Start a host. ``config`` and ``spec`` are fields over those of an ordinary session.

        ``no_namespaces``: nobody in the host's machine can make a user namespace, and root has what
        a container's root has. ``no_landlock``: the kernel knows no Landlock.
        """
        file = self.root / f"host-{len(self.hosts)}.json"
        described = {
            "what": what,
            "world": str(self.root),
            "user": self.user,
            "no_namespaces": no_namespaces,
            "no_landlock": no_landlock,
            "calls": calls,
            "spec": {"tools": ["Bash"], **(spec or {})},
            "config": {
                "run_dir": str(self.root / "run"),
                "confinement": "required",
                "confinement_backend": backend,
                **config,
                "env": {
                    "HOME": str(self.home),
                    "ANTHROPIC_API_KEY": "sk-real",
                    **(env or {}),
                },
            },
        }
        file.write_text(json.dumps(described))
        self.own()
        self.own(self.temporary)
        self.hosts.append(Host(file, {"TMPDIR": str(self.temporary), **(env or {})}))
        return self.hosts[-1]

    def run(self, *calls: tuple[str, Mapping[str, Any]], **more: Any) -> dict[str, Any]:
        """Run a host to its end. Returns what it has to say."""
        return self.begin(*calls, **more).ended()


class Host:
    """A running host."""

    def __init__(self, file: Path, env: Mapping[str, str]) -> None:
        self._said = file.with_suffix(".said")
        self.log = file.with_suffix(".log")
        kept = ("PATH", "LANG", "LC_ALL")
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, __file__, str(file)],
                env={name: os.environ[name] for name in kept if name in os.environ} | dict(env),
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def ended(self) -> dict[str, Any]:
        """What it has to say at its end. Raises when it failed."""
        try:
            code = self.process.wait(120)
        finally:
            self.process.kill()
        if code:
            raise AssertionError(self.log.read_text(errors="replace"))
        found: dict[str, Any] = json.loads(self._said.read_text())
        return found


def until(true: Callable[[], Any], what: object = "", seconds: float = 20) -> Any:
    """Wait for something to be true."""
    end = time.monotonic() + seconds
    while not (found := true()):
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds:g} s: {what or true}")
        time.sleep(0.05)
    return found


def processes(mark: str) -> dict[int, str]:
    """The processes with ``mark`` on their command line or in their environment."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            try:
                words = (entry / "cmdline").read_bytes()
                if mark.encode() in words or mark.encode() in (entry / "environ").read_bytes():
                    found[int(entry.name)] = words.replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
    return found


def made_world(temporary: Path, user: int) -> Iterator[World]:
    """A world below a folder that others can reach; removed afterwards, with what still runs in it."""
    root = temporary / f"a kit {os.urandom(4).hex()}"
    from agent_kit.testing import tree

    world = World(root, user)
    for folder in (root, world.temporary):
        folder.mkdir(mode=0o755)
    tree(root, FILES)
    try:
        yield world
    finally:
        for host in world.hosts:
            host.process.kill()
            host.process.wait()
        for process in processes(str(root)):
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue
        shutil.rmtree(root, ignore_errors=True)
        shutil.rmtree(world.temporary, ignore_errors=True)


# --- the program ----------------------------------------------------------------------------------


def main(file: str) -> None:
    described = json.loads(Path(file).read_text())
    if not os.environ.pop("AGENT_KIT_BECAME", None):
        _become(described, file)
    sys.path[:0] = _PATHS
    said = {"session": _session, "plan": _plan, "doctor": _doctor}[described["what"]](described)
    Path(file).with_suffix(".said").write_text(json.dumps(said))


def _become(described: dict[str, Any], file: str) -> None:
    """Be an ordinary process of the user: nothing of what it was before is left."""
    if os.getuid() == 0 and described["user"]:
        _make_reachable()
        os.setgroups([])
        os.setresgid(*[described["user"]] * 3)
        os.setresuid(*[described["user"]] * 3)
        _checked(_libc.prctl(_DUMPABLE, 1, 0, 0, 0), "prctl")  # or /proc/self is root's
    if described["no_namespaces"]:
        _forbid_namespaces()
    if described["no_landlock"]:
        _forbid_landlock()
    os.environ["AGENT_KIT_BECAME"] = "1"
    os.execv(sys.executable, [sys.executable, __file__, file])


_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> None:
    if result:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str = "") -> None:
    words = (each and os.fsencode(each) for each in (source, target, kind))
    _checked(_libc.mount(*words, ctypes.c_ulong(flags), data.encode()), f"mount {target}")


def _forbid_namespaces() -> None:
    """A user namespace in which no further one can be made: what many containers are."""
    user, group = os.getuid(), os.getgid()
    _checked(_libc.unshare(_NEW_USERS | _NEW_MOUNTS), "unshare")
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        Path(f"/proc/self/{name}").write_text(text)
    Path("/proc/sys/user/max_user_namespaces").write_text("0")
    for number in set(range(64)) - _CONTAINERS:
        _libc.prctl(_DROP, number, 0, 0, 0)  # there are not that many


# The capabilities that Docker and Podman leave to a container's root.
_CONTAINERS: Final = {0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 27, 29, 31}
_DROP, _NO_NEW_PRIVILEGES, _SET_SECCOMP = 24, 38, 22  # PR_CAPBSET_DROP, …


def _forbid_landlock() -> None:
    """Landlock's three calls are unknown, as to an older kernel or to an old container engine."""
    program = b"".join(
        struct.pack("HBBI", *words)
        for words in (
            (0x20, 0, 0, 0),  # load the call's number
            (0x35, 0, 2, 444),  # at least 444: landlock_create_ruleset
            (0x25, 1, 0, 446),  # above 446: landlock_restrict_self
            (0x06, 0, 0, 0x50000 | errno.ENOSYS),
            (0x06, 0, 0, 0x7FFF0000),  # allow
        )
    )
    held = ctypes.create_string_buffer(program, len(program))
    described = struct.pack("@HP", len(program) // 8, ctypes.addressof(held))
    _checked(_libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0), "no new privileges")
    _checked(_libc.prctl(_SET_SECCOMP, 2, described, 0, 0), "the filter")


def _make_reachable() -> None:
    """An interpreter below a closed folder (a root's home, say) is nothing that others can run.

    In this process's own mounts, closed folders on the way are empty ones that are open, with
    nothing in them but what is needed. On the disk nothing changes.
    """
    needed = {os.path.realpath(each) for each in (sys.prefix, sys.base_prefix, str(ROOT))}
    closed = {path: top for path in sorted(needed) if (top := _closed(path))}
    if not closed:
        return
    _checked(_libc.unshare(_NEW_MOUNTS), "unshare")
    _mount(None, "/", None, _ALL | _PRIVATE)
    handles = {path: os.open(path, os.O_PATH) for path in closed}
    for top in set(closed.values()):
        _mount("tmpfs", top, "tmpfs", 0, "mode=755")
    for path, handle in handles.items():
        os.makedirs(path, exist_ok=True)
        _mount(f"/proc/self/fd/{handle}", path, None, _BIND | _ALL)


def _closed(path: str) -> str | None:
    """The highest folder on the way to ``path`` that others can't go through."""
    parents = [str(each) for each in reversed(Path(path).parents)]
    return next((each for each in (*parents, path) if not os.stat(each).st_mode & 1), None)


def _parts(described: dict[str, Any]) -> tuple[Any, Any]:
    from agent_kit import AgentSpec, SessionConfig
    from agent_kit_sources import sources

    spec = AgentSpec(name="anybody", extensions=[sources(dir="sources")], **described["spec"])
    config = SessionConfig(
        project_dir=Path(described["world"]) / "a course",
        extra_writable_dirs=["drafts"],
        **{"denied_paths": ["**/.env"], **described["config"]},
    )
    return spec, config


def _session(described: dict[str, Any]) -> dict[str, Any]:
    from agent_kit import build_session_options
    from agent_kit.testing import ScriptedModel, ToolCall, run_session

    options = build_session_options(*_parts(described))
    calls: Sequence[Any] = [ToolCall(*each) for each in described["calls"]]
    home = Path(described["world"]) / "home"
    settings = str(options.settings)
    with ScriptedModel([*calls, "Done."]) as model:
        run = asyncio.run(run_session(options, model=model, home=home, timeout=90))
    return {
        "results": [call.result for call in run.calls],
        "locks": [str(call.lock) for call in run.calls],
        "unplayed": [str(each) for each in run.unplayed],
        "outside": run.outside,
        "stderr": run.stderr,
        "requests": [request.text for request in run.requests],
        "settings": settings if settings.startswith("{") else Path(settings).read_text(),
    }


def _plan(described: dict[str, Any]) -> dict[str, Any]:
    from agent_kit import build_session_options, plan_session

    try:
        plan = plan_session(*_parts(described))
        build_session_options(*_parts(described))
    except Exception as error:
        return {"error": type(error).__name__, "said": str(error)}
    return {
        "locks": {name: [lock.on, lock.reason] for name, lock in plan.locks.items()},
        "notes": plan.notes,
    }


def _doctor(_: dict[str, Any]) -> dict[str, Any]:
    from agent_kit.cli._doctor import diagnose

    return diagnose().as_json()


if __name__ == "__main__":
    main(sys.argv[1])

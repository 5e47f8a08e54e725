"""The machine's settings, keys and attributes, links that are control files, and folders that move."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import ssl
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions

from agent_kit import AgentSpec, SessionConfig, build_session_options
from agent_kit.confine.bubblewrap import Bubblewrap
from agent_kit.testing import AnsweredBy, SessionRun, ToolCall, run_session, tree

pytestmark = pytest.mark.e2e

FILES = ("w/drafts/d.md=d", "home/.claude/settings.json={}", "out/secret.txt=canary(outside)")
KEY_CALLS = {"x86_64": (248, 250), "aarch64": (217, 219)}


@pytest.fixture
def root() -> Iterator[Path]:
    """Not below /tmp, which is another one inside."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:  # noqa: S108
        yield tree(Path(folder).resolve(), FILES)


def built(root: Path, backend: str, **more: Any) -> ClaudeAgentOptions:
    env = {"HOME": str(root / "home"), "ANTHROPIC_API_KEY": "sk-real", **more.pop("env", {})}
    fields = {
        "project_dir": root / "w",
        "extra_writable_dirs": ["drafts"],
        "run_dir": root / "run",
        "confinement": "required",
        "confinement_backend": backend,
        "confined_tools": ["/usr/bin/python3"],
        "env": env,
    }
    spec = AgentSpec(name="holes", tools=["Bash"])
    return build_session_options(spec, SessionConfig(**{**fields, **more}))


async def said(root: Path, options: ClaudeAgentOptions, script: str) -> str:
    """What a script says inside. On the command line it might be refused for what it names."""
    (root / "w/drafts/run.py").write_text(script)
    command = "/usr/bin/python3 drafts/run.py"
    run: SessionRun = await run_session(
        options, [ToolCall("Bash", {"command": command}), "Done."], home=root / "home"
    )
    assert run.unplayed == ()
    assert run.calls[0].lock is AnsweredBy.RAN
    return run.calls[0].result or ""


# --- the machine ----------------------------------------------------------------------------------

SETTINGS = [
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/poweroff_cmd",
    "/proc/sys/vm/drop_caches",
    "/proc/sysrq-trigger",
    "/proc/irq/default_smp_affinity",
    "/proc/mtrr",
]
TELLING = ["/proc/kpageflags", "/proc/vmallocinfo", "/proc/slabinfo", "/proc/timer_list"]
OPENS = """
import os
for path, how in {paths!r}:
    try:
        os.read(os.open(path, how), 1) if how == os.O_RDONLY else os.close(os.open(path, how))
        print("opened", path)
    except OSError as error:
        print("refused", error.errno)
print("ran")
"""


async def test_no_setting_of_the_machine_is_opened_and_no_page_of_it_read(
    root: Path, backend: str
) -> None:
    """Nothing is ever written to one: it is opened."""
    paths = [(path, os.O_WRONLY) for path in SETTINGS if os.path.exists(path)]
    paths += [(path, os.O_RDONLY) for path in TELLING if os.path.exists(path)]
    text = await said(root, built(root, backend), OPENS.format(paths=paths))
    assert "ran" in text.split()
    assert "/proc" not in text


KEYS = """
import ctypes, socket
libc = ctypes.CDLL(None, use_errno=True)
buffer = ctypes.create_string_buffer(100)
for key in (libc.syscall({keyctl}, 10, -3, b"user", b"a canary", 0), {number}):
    print("read", libc.syscall({keyctl}, 11, key, buffer, 100), buffer.value)
print("added", libc.syscall({add}, b"user", b"left behind", b"x", 1, -3))
try:
    socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)
    print("made")
except OSError as error:
    print("ran", error.errno)
"""


async def test_the_keys_that_the_kernel_keeps_for_the_host_are_not_inside(
    root: Path, backend: str
) -> None:
    add, keyctl = KEY_CALLS[os.uname().machine]
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.syscall(keyctl, 1, None) > 0, "a keyring of this test's own"
    number = libc.syscall(add, b"user", b"a canary", b"canary(key)", 11, -3)
    buffer = ctypes.create_string_buffer(100)
    assert libc.syscall(keyctl, 11, number, buffer, 100) == 11
    text = await said(
        root, built(root, backend), KEYS.format(add=add, keyctl=keyctl, number=number)
    )
    assert "canary" not in text
    assert text.split().count("-1") == 3
    assert "ran 97" in text
    assert libc.syscall(keyctl, 10, -3, b"user", b"left behind", 0) == -1


ATTRIBUTES = """
import os
for call in (
    lambda path: os.getxattr(path, "user.note"),
    lambda path: os.getxattr(path, "user.note", follow_symlinks=False),
    lambda path: os.listxattr(path),
    lambda path: os.getxattr(os.open(path, 3), "user.note"),  # neither for reading nor for writing
    lambda path: os.listxattr(os.open(path, os.O_PATH)),
    lambda path: os.getxattr("/proc/self/fd/%d" % os.open(path, os.O_PATH), "user.note"),
):
    for path in {paths!r}:
        try:
            print(call(path))
        except OSError:
            print("refused")
"""


async def test_the_attributes_of_a_closed_file_are_not_read(root: Path, backend: str) -> None:
    """Whatever a program is told of its own files."""
    path = root / "out/secret.txt"
    try:
        os.setxattr(path, "user.note", b"canary(attribute)")
    except OSError:
        pytest.skip("this file system has no attributes")
    text = await said(root, built(root, backend), ATTRIBUTES.format(paths=[str(path)]))
    assert text.split() == ["refused"] * 6


# --- control files that are links -----------------------------------------------------------------

CHANGES = """
import json, os
def attempt(name, text):
    try:
        with open(name, "w") as file:
            file.write(text)
        print("written", name)
    except OSError as error:
        print("refused", name, error.errno)
attempt("docs/rules.md", "PLANTED")
attempt("docs/settings.json", json.dumps({"env": {"PLANTED": "1"}}))
attempt("skills/evil.md", "PLANTED")
attempt("docs/second.md", "PLANTED")
for old, new in (("docs/rules.md", "docs/r2"), ("skills", "s2"), ("docs", "d2")):
    try:
        os.rename(old, new)
        print("renamed", old)
    except OSError:
        print("kept", old)
attempt("free/f.md", "new")
"""


async def test_what_control_files_that_are_links_lead_to_stays_as_it_was(
    root: Path, backend: str
) -> None:
    """Every lock but this one lets a script change it, since its name is no control file's."""
    files = (
        "docs/rules.md=rules",
        "docs/settings.json={}",
        "docs/free.md=old",
        "skills/s/SKILL.md=s",
        "free/f.md=old",
        "lib/.claude/x=x",
    )
    workspace = tree(root / "w", (*files, ".claude/x=x", "AGENTS.md=second"))
    (workspace / "CLAUDE.md").symlink_to("docs/rules.md")
    (workspace / ".claude/settings.json").symlink_to("../docs/settings.json")
    (workspace / "lib/.claude/skills").symlink_to("../../skills")
    os.link(workspace / "AGENTS.md", workspace / "docs/second.md")
    options = built(root, backend, extra_writable_dirs=["."])
    text = await said(root, options, CHANGES)
    assert "written free/f.md" in text  # a control
    assert text.count("written") == 1, text
    assert "renamed" not in text
    assert (workspace / "free/f.md").read_text() == "new"
    assert (workspace / "CLAUDE.md").read_text() == "rules"
    assert json.loads((workspace / ".claude/settings.json").read_text()) == {}
    assert [path.name for path in (workspace / "lib/.claude/skills").iterdir()] == ["s"]
    assert (workspace / "AGENTS.md").read_text() == "second"


# --- what moves while bubblewrap starts -----------------------------------------------------------


async def test_a_folder_that_becomes_a_link_while_bubblewrap_starts_opens_nothing(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another session of the project swaps it after all has been judged, before the first mount."""
    tree(root, ["w/drafts/p/.env=x", "bin/"])
    program = root / "bin/bwrap"
    real = shutil.which("bwrap")
    swap = f"cd '{root}/w/drafts'; [ -e go ] && rm go && mv p aside && ln -s ../.. p"
    program.write_text(f'#!/bin/sh\n{swap}\nexec {real} "$@"\n')
    program.chmod(0o755)
    own = {"bubblewrap": Bubblewrap(program=str(program))}
    monkeypatch.setattr("agent_kit.confine.choice.BACKENDS", own)
    (root / "w/drafts/p/free.md").write_text("seen")
    names = ["drafts/p/free.md", f"{root}/out/secret.txt"]
    look = (
        f"import os\nprint('ran', *(open(name).read() for name in {names} if os.path.exists(name)))\n"
        f"if os.path.exists('{root}/out'): open('{root}/out/planted', 'w').close()\n"
    )
    fields: dict[str, Any] = {"denied_paths": ["**/.env"], "extra_writable_dirs": ["."]}
    fields["backend"] = "bubblewrap"
    assert "ran seen" in await said(root, built(root, **fields), look)  # a control
    (root / "w/drafts/go").touch()
    with pytest.raises(Exception) as failed:
        await said(root, built(root, **fields), look)
    assert not (root / "w/drafts/go").exists()
    assert "canary" not in str(failed.value)
    assert not (root / "out/planted").exists()
    assert [path.name for path in (root / "out").iterdir()] == ["secret.txt"]


# --- certificates ---------------------------------------------------------------------------------


async def test_certificates_that_the_environment_names_are_read_inside(
    root: Path, backend: str
) -> None:
    found = ssl.create_default_context().get_ca_certs(binary_form=True)
    if not found:
        pytest.skip("this machine has no certificates")
    tree(root, [f"ca/own.pem={ssl.DER_cert_to_PEM_cert(found[0])}", "ca/other.pem=canary(other)"])
    script = (
        "import os\n"
        "for name in (os.environ['SSL_CERT_FILE'], os.environ['SSL_CERT_FILE'] + '/../other.pem'):\n"
        "    try: print(open(os.path.normpath(name)).readline())\n"
        "    except OSError: print('refused')\n"
    )
    options = built(root, backend, env={"SSL_CERT_FILE": str(root / "ca/own.pem")})
    text = await said(root, options, script)
    assert text.split() == ["-----BEGIN", "CERTIFICATE-----", "refused"]

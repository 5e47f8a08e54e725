"""A real PostgreSQL server for tests: in a temporary folder, on a Unix socket, gone at the end.

Needs the server's programs (Debian and Ubuntu: the package postgresql), which need not be on the PATH.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

PASSWORD = "correct-horse-battery"
"""The password of the role ``guarded``, the only one that needs one."""

_RULES = "local all guarded scram-sha-256\nlocal all all trust\n"
_SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "120",
    "shared_buffers": "64MB",
    "timezone": "UTC",
}


class Server:
    """A server that can be stopped and started again."""

    def __init__(self, folder: Path, programs: Path, user: str | None) -> None:
        self.folder = folder
        self._programs = programs
        self._as: dict[str, Any] = {}
        if user is not None:
            known = pwd.getpwnam(user)
            self._as = {"user": known.pw_uid, "group": known.pw_gid, "extra_groups": []}
            os.chown(folder, known.pw_uid, known.pw_gid)
        self._process: subprocess.Popen[bytes] | None = None

    def make(self) -> None:
        self._run("initdb", "-D", "data", "-U", "owner", "-A", "trust", "-E", "UTF8", "-N")
        (self.folder / "data" / "pg_hba.conf").write_text(_RULES)

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [self._programs / program, *arguments],
            cwd=self.folder,
            env={"LC_ALL": "C", "PATH": os.environ.get("PATH", "")},
            capture_output=True,
            check=False,
            **self._as,
        )
        if done.returncode:
            pytest.fail(f"{program} failed: {done.stderr.decode(errors='replace')}")

    def start(self) -> None:
        settings = [f"--{name}={value}" for name, value in _SETTINGS.items()]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", "data", "-k", str(self.folder), *settings],
                cwd=self.folder,
                env={"LC_ALL": "C"},
                stdout=log,
                stderr=log,
                **self._as,
            )
        end = time.monotonic() + 30
        while True:
            try:
                psycopg.connect(self.dsn("postgres")).close()
            except psycopg.OperationalError:
                if self._process.poll() is not None or time.monotonic() > end:
                    pytest.fail(f"no server: {(self.folder / 'log').read_text()[-2000:]}")
                time.sleep(0.05)
            else:
                return

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """End it: SIGINT ends sessions and what they do, SIGQUIT is a crash."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(how)
            process.wait(timeout=30)

    def dsn(self, database: str, *, role: str = "owner") -> str:
        return f"host={self.folder} dbname={database} user={role}"

    def make_database(self, name: str, *, encoding: str = "UTF8") -> str:
        """An empty database; its DSN."""
        self.execute(f"CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0")
        return self.dsn(name)

    def execute(self, statement: str, *, database: str = "postgres") -> list[tuple[Any, ...]]:
        with psycopg.connect(self.dsn(database), autocommit=True) as session:
            done = session.execute(statement)
            return done.fetchall() if done.description else []


def _programs() -> Path:
    """The folder of the server's programs, the newest one's."""
    config = shutil.which("pg_config")
    told = (
        [subprocess.run([config, "--bindir"], capture_output=True, text=True, check=True).stdout]
        if config
        else []
    )
    versions = Path("/usr/lib/postgresql").glob("*/bin")
    newest = sorted(versions, key=lambda path: float(path.parent.name), reverse=True)
    for folder in (*(Path(line.strip()) for line in told), *newest):
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    pytest.fail(
        "No PostgreSQL server is installed: these tests need its programs initdb and postgres. "
        "Debian and Ubuntu: apt-get install postgresql."
    )


def _user() -> str | None:
    """Whom the server runs as: it refuses to run as root."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in ("postgres", "nobody") if name in names)


def _folder() -> Path:
    """A short name: a Unix socket's path has at most about 100 characters."""
    chosen = tempfile.mkdtemp(prefix="pg-")
    if len(chosen) > 70:
        os.rmdir(chosen)
        chosen = tempfile.mkdtemp(prefix="pg-", dir="/tmp")
    return Path(chosen)


@contextmanager
def running_server() -> Iterator[Server]:
    """A server, until the block ends."""
    folder = _folder()
    server = Server(folder, _programs(), _user())
    try:
        server.make()
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder)

"""Eight processes that write one base while some of them are killed; what they were told is there."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field

from agent_kit.store import DocumentStore

__all__ = ["Told", "check", "write_for"]

WRITERS = 8
LOGS = 4

WRITER = """
import random, sys
{prelude}
from agent_kit.store import NewPage, StoreCode, StoreError

store = {opens}
name, chance = sys.argv[1], random.Random(sys.argv[1])
for number in range(10**9):
    token = f"{{name}}n{{number}}"
    try:
        if number % 5 == 0:
            pages = [NewPage(type="page", title=f"{{token}} {{part}}", slug=f"{{token}}-{{part}}",
                             body=f"needle {{token}}") for part in "ab"]
            store.create(pages)
            print("made", token, flush=True)
        elif number % 5 == 1:
            hits = store.search("needle", limit=5).hits
            assert all(hit.id.type == "page" for hit in hits), hits
        else:
            log = f"log/log{{chance.randrange({logs})}}"
            page = store.read(log)
            store.edit(log, version=page.version, old="start", new=f"start {{token}}")
            print("wrote", token, flush=True)
    except StoreError as error:
        if error.code not in (StoreCode.STALE, StoreCode.BUSY, StoreCode.UNFINISHED):
            raise
"""


@dataclass(slots=True)
class Told:
    """What the writers were told is done, and how many were killed."""

    made: list[str] = field(default_factory=list)
    wrote: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    killed: int = 0


def write_for(seconds: float, *, opens: str, prelude: str = "") -> Told:
    """Let eight processes write for so many seconds; about twice a second one of them is killed.

    ``opens`` is the expression with which each opens the store, after ``prelude``.
    """
    told, numbers = Told(), iter(range(10**6))
    listeners: list[threading.Thread] = []
    code = WRITER.format(opens=opens, prelude=prelude, logs=LOGS)

    def start() -> subprocess.Popen[str]:
        words = (sys.executable, "-W", "error", "-c", code, f"w{next(numbers)}x")
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        listeners.append(threading.Thread(target=listen, args=(process,), daemon=True))
        listeners[-1].start()
        return process

    def listen(process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        for line in process.stdout:
            what, _, token = line.strip().partition(" ")
            if line.endswith("\n"):
                {"made": told.made, "wrote": told.wrote}[what].append(token)
        said = process.stderr.read()
        process.stdout.close()
        process.stderr.close()
        if process.wait() != -signal.SIGKILL:
            told.errors.append(said)

    chance = random.Random(1)
    running = [start() for _ in range(WRITERS)]
    end = time.monotonic() + seconds
    while time.monotonic() < end and not told.errors:
        time.sleep(chance.uniform(0.2, 0.8))
        at = chance.randrange(WRITERS)
        running[at].kill()
        told.killed += 1
        running[at] = start()
    for process in running:
        process.kill()
    for listener in listeners:
        listener.join(30)
    return told


def check(store: DocumentStore, told: Told) -> None:
    """That everything that a writer was told is there, once and whole."""
    assert not told.errors, told.errors[0]
    assert min(len(told.made), len(told.wrote)) > 10, told
    ids = {str(known) for known in store.list().ids}
    texts = {known: store.read(known).body for known in ids}
    for token in told.made:
        for part in "ab":
            assert texts[f"page/{token}-{part}"].strip() == f"needle {token}"
    pairs = Counter(known.rpartition("-")[0] for known in ids if known.startswith("page/"))
    assert set(pairs.values()) == {2}, "one of two pages that are made together"
    words = Counter(
        word for known in texts if known.startswith("log/") for word in texts[known].split()
    )
    lost = [token for token in told.wrote if words[token] != 1]
    assert lost == []
    unsaid = len(words) - 1 - len(told.wrote)  # written, and killed before it said so
    assert 0 <= unsaid <= told.killed + WRITERS
    assert store.search("needle", limit=1).total == sum(pairs.values())

"""What a base of pages costs: a search over one of bare FTS5, an edit over a synced file, opening it.

The pages are generated text in several scripts. Bare FTS5 has the same texts in one table with its
default tokenizer, in a file, and is asked for the same words as one phrase, best first, 20 with snippets. Of
two characters it finds those that stand alone, in an eighth of the pages that have them.
"""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from agent_kit.store import MarkdownStore
from benchmarks.measure import Effort, Row, figure, seconds, take_turns

__all__ = ["measure"]

SIZES: Final = (1_000, 10_000, 100_000)
_LARGE: Final = 100_000  # the bounds are promised of this many pages
_BARE, _UNSPACED, _EDIT, _OPEN = 1.5, 6.0, 3.0, 300.0
_FIRST, _SECOND = "firstword", "secondword"  # of the page that is edited
_RARE, _COMMON, _CHINESE, _JAPANESE, _KOREAN = "rareword", "common", "权限", "検索", "검색"
# Key, what it is, the query, and how many times a bare query it may take.
_QUERIES: Final = (
    ("rare", "a rare word", _RARE, _BARE),
    ("common", "a word of every other page", _COMMON, _BARE),
    ("zh", "two Chinese characters", _CHINESE, _UNSPACED),
    ("ja", "two Japanese characters", _JAPANESE, _UNSPACED),
    ("ko", "two Korean characters", _KOREAN, _UNSPACED),
)
_HAN: Final = "数据分析系统模型知识库检索管理设置用户文档编辑版本历史更新来源图表"
_KANA: Final = "データベースでおこないますこれはページのてきすとです文書仕組利用者"
_HANGUL: Final = "한국어문서관리시스템사용자데이터분석모델지식편집기록"
_CYRILLIC: Final = [
    "знание",
    "память",
    "источник",
    "страница",
    "поиск",
    "правило",
    "ответ",
    "вопрос",
]


def measure(effort: Effort) -> Iterator[Row]:
    for size in SIZES:
        if size <= max(effort.literals, SIZES[0]):
            with _own_cache():
                yield from _of(size, effort)


@contextmanager
def _own_cache() -> Iterator[None]:
    """The indexes of these bases go with them."""
    before = os.environ.get("XDG_CACHE_HOME")
    with tempfile.TemporaryDirectory(prefix="agent-kit-bench-") as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        try:
            yield
        finally:
            if before is None:
                del os.environ["XDG_CACHE_HOME"]
            else:
                os.environ["XDG_CACHE_HOME"] = before


def _of(size: int, effort: Effort) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="agent-kit-bench-") as folder:
        root, large = Path(folder) / "base", size >= _LARGE
        texts = _pages(root, size)
        store, bare = MarkdownStore(root), _bare(texts, Path(folder) / "bare.sqlite")
        del texts
        store.search("x")
        time.sleep(2.5)  # files that were changed just now are looked at again
        for _ in range(3):
            store.search("x")
        for key, what, query, bound in _QUERIES:
            samples = take_turns(
                lambda query=query: seconds(lambda: bare(query))[0],  # type: ignore[misc]
                lambda query=query: seconds(lambda: store.search(query))[0],  # type: ignore[misc]
                max(5, effort.blocks // 10),
            )
            yield samples.ratio(
                f"store.{size}.{key}",
                f"a search for {what} in {size:,} pages : bare FTS5",
                bound=bound if large else None,
            )
        yield _edit(store, root, size, effort, bound=_EDIT if large else None)
        time.sleep(2.5)
        store.search(_RARE)
        opened = take_turns(
            lambda: seconds(lambda: _look(root))[0],
            lambda: seconds(lambda: MarkdownStore(root).search(_RARE))[0],
            5,
        )
        what = f"opening {size:,} unchanged pages, and a search"
        yield figure(
            f"store.{size}.open",
            what,
            "ms",
            [taken * 1e3 for taken in opened.candidate],
            bound=_OPEN if large else None,
        )
        yield opened.ratio(f"store.{size}.look", f"{what} : asking for each file's size and times")
        yield figure(
            f"store.{size}.memory",
            f"the most memory of a process that opens {size:,} pages and searches ten times",
            "MiB",
            [_memory(root)],
        )


def _edit(
    store: MarkdownStore, root: Path, size: int, effort: Effort, *, bound: float | None
) -> Row:
    page, words = store.read("t0/p0"), (_FIRST, _SECOND)

    def edit() -> None:
        nonlocal page
        old, new = words if words[0] in page.body else words[::-1]
        page = store.edit("t0/p0", version=page.version, old=old, new=new)
        assert store.search(new).total == 1

    data = (root / "t0" / "p0.md").read_bytes()

    def write() -> None:
        with (root / ".bench").open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    samples = take_turns(
        lambda: seconds(write)[0], lambda: seconds(edit)[0], max(5, effort.blocks // 20)
    )
    what = f"an edit and the search that finds it in {size:,} pages : writing and syncing the file"
    return samples.ratio(f"store.{size}.edit", what, bound=bound)


def _pages(root: Path, size: int) -> list[str]:
    chance = random.Random(1)
    words = [
        "".join(chance.choices("abcdefghiklmnoprstuw", k=chance.randint(3, 9)))
        for _ in range(20_000)
    ]
    weights = [1 / (rank + 10) for rank in range(len(words))]
    texts = []
    for kind in range(5):
        (root / f"t{kind}").mkdir(parents=True)
    for number in range(size):
        part = chance.choices(words, weights, k=130)
        part += chance.choices(_CYRILLIC, k=10)
        part += ["".join(chance.choices(kind, k=30)) for kind in (_HAN, _KANA, _HANGUL)]
        if number % 2:
            part.append(_COMMON)
        if number % 997 == 0:
            part.append(_RARE)
        if number % 20 == 0:  # inside a run of characters, as most words are
            words_here = (_CHINESE, _JAPANESE, _KOREAN)
            alone = number % 160 == 0
            part += [word if alone else f"{_HAN[:7]}{word}{_HAN[7:14]}" for word in words_here]
        if number == 0:
            part.append(_FIRST)
        chance.shuffle(part)
        text = f"---\ntitle: Page {number}\ntype: t{number % 5}\n---\n\n{' '.join(part)}\n"
        (root / f"t{number % 5}" / f"p{number}.md").write_text(text, encoding="utf-8")
        texts.append(text)
    return texts


def _look(root: Path) -> None:
    for folder in root.iterdir():
        if not folder.name.startswith("."):
            with os.scandir(folder) as entries:
                for entry in entries:
                    entry.stat(follow_symlinks=False)


def _bare(texts: list[str], path: Path) -> Callable[[str], object]:
    database = sqlite3.connect(path)
    database.execute("CREATE VIRTUAL TABLE pages USING fts5(text)")
    database.executemany("INSERT INTO pages VALUES (?)", ((text,) for text in texts))
    database.commit()
    statement = (
        "SELECT rowid, snippet(pages, 0, '', '', '…', 30) FROM pages WHERE pages MATCH ?"
        " ORDER BY rank LIMIT 20"
    )
    return lambda query: database.execute(statement, (f'"{query}"',)).fetchall()


def _memory(root: Path) -> float:
    # Not getrusage: what it tells of a new process begins with what its parent had.
    code = (
        "import sys; from pathlib import Path; from agent_kit.store import MarkdownStore;"
        "store = MarkdownStore(Path(sys.argv[1]));"
        "[store.search('common') for _ in range(10)];"
        "print([line.split()[1] for line in open('/proc/self/status') if 'VmHWM' in line][0])"
    )
    words = [sys.executable, "-c", code, str(root)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return float(done.stdout) / 1024

"""What many denied entries cost: to judge a call, and to build the scope."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import process_time
from typing import NamedTuple

from agent_kit import FileScope, check_file_scope
from benchmarks.measure import Effort, Row, alternate, figure, seconds
from benchmarks.places import Place, place

__all__ = ["measure"]


_ODD = str.maketrans("0123456789", "!$%&+,;=@~")


class _Family(NamedTuple):
    """Patterns of one kind. None of them matches the judged file.

    ``{n}`` is a number; ``{starred}`` are its digits, as characters that the file's path hasn't got,
    with stars between them.
    """

    key: str
    what: str
    patterns: tuple[str, ...]
    bounded: bool = True

    def entries(self, n: int) -> list[str]:
        texts = self.patterns
        return [
            texts[k % len(texts)].format(n=k, starred="*".join(str(k).translate(_ODD)))
            for k in range(n)
        ]


_PLAIN = (
    _Family("extension", "by extension", ("*.ext{n}",)),
    _Family("name", "by exact name", ("**/folder-{n}/*",)),
    _Family("head", "by head", ("draft{n}*",)),
    _Family("tail", "by tail", ("*draft{n}",)),
    _Family("leading", "by a leading folder", ("/srv/folder-{n}/**/*.key",)),
    _Family("relative", "by a folder of the project", ("sub-{n}/*.key",)),
)
_FAMILIES = (
    *_PLAIN,
    _Family("mixed", "of all these kinds", tuple(p for family in _PLAIN for p in family.patterns)),
    _Family("middle", "by a text in the middle", ("*word{n}*",)),
    _Family("class", "by a character class", ("[a-c]word{n}.txt",)),
    # The judged file is a file.md: it has the head and the extension of every one of these.
    _Family("crowded", "that all fit the file's head and extension", ("f*word{n}*.md",)),
    # Hardly two characters in a row: these are tried one and all.
    _Family("loose", "that fix nothing", ("*{starred}*",), bounded=False),
)


def measure(effort: Effort) -> Iterator[Row]:
    with place() as at:
        check_file_scope(at.scope(["*.first"]), "Read", {"file_path": at.file})  # loads pathspec
        yield from _literals(at, effort)
        for family in _FAMILIES:
            yield from _patterns(at, family, effort)


def _literals(at: Place, effort: Effort) -> Iterator[Row]:
    n = effort.literals
    one = at.scope(["secret"])
    for key, what, entries in (
        ("literals.near", "in a folder that exists", [f"{at.far}/secret{k}.txt" for k in range(n)]),
        ("literals.none", "in missing folders", [f"none{k}/secret{k}.txt" for k in range(n)]),
    ):
        many, built = _built(at, entries, effort)
        yield _grown(
            f"{key}.judge", f"{n:,} literal entries {what} : one", one, many, at, effort, 1.1
        )
        yield figure(
            f"{key}.build",
            f"building a scope of {n:,} literal entries {what}, for each",
            "µs",
            built,
            statistic="minimum",
            bound=20,
        )


def _patterns(at: Place, family: _Family, effort: Effort) -> Iterator[Row]:
    n = effort.patterns
    entries = family.entries(n)
    one = at.scope(entries[:1])
    many, built = _built(at, entries, effort)
    first, _ = seconds(lambda: _judge(many, at))
    key = f"patterns.{family.key}"
    bound = 2.0 if family.bounded else None
    yield _grown(
        f"{key}.judge", f"{n:,} patterns {family.what} : one", one, many, at, effort, bound
    )
    yield figure(
        f"{key}.build",
        f"building a scope of {n:,} patterns {family.what}, for each",
        "µs",
        built,
        statistic="minimum",
        bound=20,
        note=f"the first decision took {first * 1e3:.2f} ms",
    )


def _judge(scope: FileScope, at: Place) -> str | None:
    return check_file_scope(scope, "Read", {"file_path": at.file})


def _built(at: Place, entries: Sequence[str], effort: Effort) -> tuple[FileScope, list[float]]:
    """The scope, and the processor's microseconds for each entry, from building it several times."""
    taken = []
    for _ in range(effort.builds):
        spent, scope = seconds(lambda: at.scope(entries), process_time)
        taken.append(spent / len(entries) * 1e6)
    return scope, taken


def _grown(
    key: str,
    what: str,
    one: FileScope,
    many: FileScope,
    at: Place,
    effort: Effort,
    bound: float | None,
) -> Row:
    call = {"file_path": at.file}
    for scope in (one, many):
        assert check_file_scope(scope, "Read", call) is None, f"{key}: the file must be readable"
    return alternate(
        lambda: check_file_scope(one, "Read", call),
        lambda: check_file_scope(many, "Read", call),
        effort,
    ).ratio(key, what, bound=bound)

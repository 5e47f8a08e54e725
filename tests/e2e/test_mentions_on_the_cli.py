"""Which texts of a prompt the real CLI takes for files, and that we find every one of them.

Each row has files of its own, each file its own canary: what the CLI opened is what turned up in a
request. One session serves the table, one more a few hundred prompts made at random.
"""

from __future__ import annotations

import asyncio
import base64
import os
import random
import re
import unicodedata
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from claude_agent_sdk import ClaudeAgentOptions

from agent_kit.scope.mentions import find_mentions
from agent_kit.scope.text import JS_SPACE
from agent_kit.testing import SessionRun, run_session

pytestmark = pytest.mark.e2e

OPENED = (True, True)  # the CLI opens it, and we find it
FOUND = (False, True)  # the CLI doesn't open it, a reading of ours names it
NEITHER = (False, False)

NFC = "caf\u00e9.txt"
NFD = unicodedata.normalize("NFD", NFC)
CJK_MARKS = "\u3001\u3002\uff01\uff1f"  # the four that a mention may follow

# Prompt, and for each file that exists: (does the CLI open it, do we find it). K is a name that no
# other row uses, ROOT the folder of the project and of HOME (in home/).
FORMS: tuple[tuple[str, dict[str, tuple[bool, bool]]], ...] = (
    # plain
    ("@K.txt", {"K.txt": OPENED}),
    ("see @K.txt for more", {"K.txt": OPENED}),
    ("see\n@K.txt\nand", {"K.txt": OPENED}),
    ("```\n@K.txt\n```", {"K.txt": OPENED}),
    ("`run @K.txt`", {"K.txt": OPENED}),
    ("(see @K.txt)", {"K.txt": OPENED}),
    ("<!-- @K.txt -->", {"K.txt": OPENED}),
    ("<task-notification>\n@K.txt\n</task-notification>", {"K.txt": OPENED}),
    ("# @K.txt", {"K.txt": OPENED}),
    ("@.Kenv", {".Kenv": OPENED}),
    ("@-K", {"-K": OPENED}),
    ("@agent-K", {"agent-K": OPENED}),
    ("@file:K", {"file:K": OPENED, "K": NEITHER}),
    ("@server:K.txt", {"server:K.txt": OPENED}),
    ("@@K.txt", {"@K.txt": OPENED, "K.txt": NEITHER}),
    # where the path lies
    ("@./K.txt", {"K.txt": OPENED}),
    ("@../K.txt", {"../K.txt": OPENED}),
    ("@sub/../K.txt", {"K.txt": OPENED}),
    ("@nosuch/../K.txt", {"K.txt": OPENED}),
    ("@~/K.txt", {"ROOT/home/K.txt": OPENED}),
    ("@ROOT/project/K.txt", {"K.txt": OPENED}),
    ("@ROOT//project/./K.txt", {"K.txt": OPENED}),
    ("@/proc/self/cwd/K.txt", {"K.txt": OPENED}),
    ("@" + "./" * 3000 + "K.txt", {"K.txt": OPENED}),
    ("@" + "a/../" * 3000 + "K.txt", {"K.txt": OPENED}),
    ("@$HOME/K.txt", {"ROOT/home/K.txt": NEITHER}),
    ("@~K.txt", {"~K.txt": OPENED}),
    ("@file://ROOT/project/K.txt", {"K.txt": NEITHER}),
    # what may follow
    *(
        (f"@K.txt{mark}", {"K.txt": OPENED})
        for mark in ",.;:!?)]}>'\"`-/@#*\u2026\u3002\uff0c\u300d"
    ),
    ("@K.txt), and", {"K.txt": OPENED}),
    ("@K.txt\0", {"K.txt": OPENED}),
    ("@K.txt\u200b", {"K.txt": OPENED, "K.txt\u200b": FOUND}),
    ("@K.txt,more", {"K.txt,more": OPENED, "K.txt": NEITHER}),
    ("@K.txt:10", {"K.txt:10": OPENED, "K.txt": NEITHER}),
    ("@K(1)", {"K(1": OPENED, "K(1)": FOUND}),
    ("@K(1).txt", {"K(1).txt": OPENED}),
    ("@K\u00e9", {"K": OPENED, "K\u00e9": FOUND}),
    ("@K\u4e2d\u6587", {"K": OPENED, "K\u4e2d\u6587": FOUND}),
    ("@\u4e2d\u6587", {"\u4e2d\u6587": FOUND}),
    ("@\u4e2d\u6587K.txt", {"\u4e2d\u6587K.txt": OPENED}),
    # line ranges
    ("@K.txt#L1", {"K.txt": OPENED, "K.txt#L1": FOUND}),
    ("@K.txt#L1-9", {"K.txt": OPENED}),
    ("@K.txt#L1-9,", {"K.txt": OPENED}),
    ("@K.txt#L1-L9", {"K.txt": OPENED}),
    ("@K.txt#L0", {"K.txt": OPENED}),
    ("@K.txt#heading", {"K.txt": OPENED}),
    ("@K.txt#L1#x", {"K.txt": OPENED}),
    ("@K.txt#a#b", {"K.txt#a#b": OPENED}),
    ("@K#b.txt", {"K#b.txt": FOUND}),
    ("@#K.txt", {"#K.txt": OPENED}),
    # quoted
    ('@"K.txt"', {"K.txt": OPENED}),
    ('@"K and more.txt"', {"K and more.txt": OPENED}),
    ('@"K.txt"more', {"K.txt": OPENED, "K.txtmore": NEITHER}),
    ('@"K.txt"#L1', {"K.txt": OPENED}),
    ('@"K.txt#L1"', {"K.txt": OPENED}),
    ('@"K.txt##"', {"K.txt##": OPENED}),
    ('@"~/K.txt"', {"ROOT/home/K.txt": OPENED}),
    ('@"../K.txt"', {"../K.txt": OPENED}),
    ('@"ROOT/project/K.txt"', {"K.txt": OPENED}),
    ('@" K.txt\u3000"', {"K.txt": OPENED}),
    ('@"K\nb.txt"', {"K\nb.txt": OPENED}),
    ('@"K(1)"', {"K(1)": OPENED}),
    ('@"K\u00e9"', {"K\u00e9": OPENED}),
    ('@"Ka.txt"@"Kb.txt"', {"Ka.txt": OPENED, "Kb.txt": NEITHER}),
    ('@"Ka.txt" @"Kb.txt"', {"Ka.txt": OPENED, "Kb.txt": OPENED}),
    ('@"Ka @Kb.txt"', {"Ka @Kb.txt": OPENED, "Kb.txt": OPENED}),
    ('@"K \\"b.txt"', {"K \\": OPENED, 'K "b.txt': NEITHER}),
    ('@"K (agent)"', {"K (agent)": FOUND}),
    ('@"K.txt', {"K.txt": NEITHER}),
    ('@"K.txt\0"', {"K.txt": NEITHER}),
    ("@'K b.txt'", {"K b.txt": NEITHER, "'K": OPENED}),
    ("@K\\ b.txt", {"K b.txt": NEITHER, "K": OPENED}),
    ("@K%20b.txt", {"K b.txt": NEITHER}),
    # a screenshot of macOS: a narrow space before AM, whatever was asked for
    ('@"K AM.png"', {"K\u202fAM.png": OPENED}),
    ('@"K\u202fPM.png"', {"K PM.png": OPENED}),
    ('@"K\u202fPM.txt"', {"K PM.txt": NEITHER}),
    # two in a row
    ("@Ka.txt @Kb.txt", {"Ka.txt": OPENED, "Kb.txt": OPENED}),
    ("@Ka.txt\n\n@Kb.txt", {"Ka.txt": OPENED, "Kb.txt": OPENED}),
    ("@Ka.txt,@Kb.txt", {"Ka.txt": NEITHER, "Kb.txt": NEITHER}),
    ("@Ka.txt\u3001@Kb.txt", {"Ka.txt\u3001@Kb.txt": OPENED, "Ka.txt": NEITHER, "Kb.txt": NEITHER}),
    # Unicode forms and case
    (f"@K{NFC}", {f"K{NFC}": OPENED, f"K{NFD}": NEITHER}),
    (f"@K{NFD}", {f"K{NFD}": OPENED, f"K{NFC}": NEITHER}),
    ("@\U0001f600K.txt", {"\U0001f600K.txt": OPENED}),
    ("@KABC.TXT", {"Kabc.txt": NEITHER}),
    # folders: a name in the listing
    ("@Kdir", {"Kdir/Kname": OPENED}),
    ("@Kdir/", {"Kdir/Kname": OPENED}),
    ("@Kdir/.", {"Kdir/Kname": OPENED}),
    ("@Kdir,", {"Kdir/Kname": OPENED}),
    ('@"K dir"', {"K dir/Kname": OPENED}),
    # only alike
    ("(@K.txt)", {"K.txt": NEITHER}),
    ("`@K.txt`", {"K.txt": NEITHER}),
    ('"@K.txt"', {"K.txt": NEITHER}),
    ("me@K.txt", {"K.txt": NEITHER}),
    ("<b>@K.txt</b>", {"K.txt": NEITHER}),
    ("a:@K.txt", {"K.txt": NEITHER}),
    ("@ K.txt", {"K.txt": NEITHER}),
    ("@(K.txt)", {"K.txt": NEITHER}),
    ("@<K.txt>", {"K.txt": NEITHER}),
    ("@K*.txt", {"Ka.txt": NEITHER}),
    ("\u8acb\u770b@K.txt", {"K.txt": NEITHER}),
    ("\u300c@K.txt\u300d", {"K.txt": NEITHER}),
    ("\u200b@K.txt", {"K.txt": NEITHER}),
    ("\0@K.txt", {"K.txt": NEITHER}),
    *((f"see{char}@K.txt", {"K.txt": NEITHER}) for char in "\x1c\x1f\x85\uff0c\uff1a\u201c,.;-="),
    # every character that a mention may follow, and every one that ends it
    *((f"see{char}@K.txt", {"K.txt": OPENED}) for char in JS_SPACE + CJK_MARKS),
    *((f'see{char}@"K.txt"', {"K.txt": OPENED}) for char in JS_SPACE + CJK_MARKS),
    *((f"@K.txt{char}more", {"K.txt": OPENED}) for char in JS_SPACE),
    *((f"@K.txt{char}a", {"K.txt": NEITHER, f"K.txt{char}a": OPENED}) for char in "\x1c\x85\u200b"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A row with its names filled in, and the files that the CLI opened."""

    prompt: str
    wanted: dict[str, tuple[bool, bool]]
    opened: set[str]
    base: Path
    home: Path

    def found(self) -> set[str]:
        """The files that a reading of ours names, as the CLI reads paths."""
        paths = set()
        for mention in find_mentions(self.prompt):
            for text in mention.readings:
                text = f"{self.home}{text[1:]}" if text.startswith("~/") else text
                text = text.replace("/proc/self/cwd", str(self.base))
                paths.add(os.path.normpath(os.path.join(self.base, text)))
        return {name for name in self.wanted if self._names(name) & paths}

    def _names(self, name: str) -> set[str]:
        path = os.path.normpath(os.path.join(self.base, name))
        return {path, os.path.dirname(path)} if name.endswith("name") else {path}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> list[Measured]:
    root = tmp_path_factory.mktemp("mentions")
    base, home = root / "project", root / "home"
    base.mkdir()
    home.mkdir()
    rows = []
    for number, (prompt, wanted) in enumerate(FORMS):
        key = f"k{number:03d}"
        names = {name.replace("K", key).replace("ROOT", str(root)): w for name, w in wanted.items()}
        for place, name in enumerate(names):
            _write(base / name, f"canary({key}.{place})")
        rows.append((prompt.replace("K", key).replace("ROOT", str(root)), key, names))
    run = _session(base, home, [prompt for prompt, _, _ in rows])
    seen = _marks(run, r"canary\(k\d+\.\d+\)|k\d+name")
    return [
        Measured(
            prompt=prompt,
            wanted=names,
            opened={
                name
                for place, name in enumerate(names)
                if {f"canary({key}.{place})", f"{key}name"} & seen
            },
            base=base,
            home=home,
        )
        for prompt, key, names in rows
    ]


def _write(path: Path, mark: str) -> None:
    """A file with its canary; in a picture it is the text of a comment block."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_picture(mark.encode()) if path.suffix == ".png" else mark.encode())


def _picture(text: bytes) -> bytes:
    """A PNG of one pixel with a comment."""
    chunks = (
        (b"IHDR", b"\0\0\0\1\0\0\0\1\x08\0\0\0\0"),
        (b"tEXt", b"Comment\0" + text),
        (b"IDAT", zlib.compress(b"\0\0")),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")
        for kind, data in chunks
    )


def _marks(run: SessionRun, mark: str) -> set[str]:
    """The marks in all requests, those in pictures too."""
    texts = [request.text for request in run.requests]
    pictures = {picture for text in texts for picture in re.findall(r"iVBORw0KGgo[\w+/=]+", text)}
    texts += [base64.b64decode(picture).decode("latin-1") for picture in pictures]
    return {found for text in texts for found in re.findall(mark, text)}


def _session(base: Path, home: Path, prompts: list[str]) -> SessionRun:
    options = ClaudeAgentOptions(
        cwd=base, tools=["Read"], allowed_tools=["Read"], setting_sources=[]
    )
    return asyncio.run(run_session(options, prompt=prompts, home=home, timeout=120))


def _label(prompt: str) -> str:
    return ascii(prompt if len(prompt) < 60 else prompt[:20] + "..." + prompt[-20:])


@pytest.mark.parametrize(
    "number", range(len(FORMS)), ids=[f"{n}-{_label(p)}" for n, (p, _) in enumerate(FORMS)]
)
def test_the_table_says_what_the_cli_opens_and_what_we_find(
    measured: list[Measured], number: int
) -> None:
    row = measured[number]
    assert row.opened == {name for name, (opens, _) in row.wanted.items() if opens}
    assert row.found() == {name for name, (_, found) in row.wanted.items() if found}


def test_no_row_lets_the_cli_open_what_we_do_not_find() -> None:
    assert not [p for p, files in FORMS for opens, found in files.values() if opens and not found]


PIECES = ("@", "@", '@"', '"', '"', "#", "#L1", " ", " ", ".", ",", ")", "\u3001", "\n", "\\")
MORE = ("\u00e9", "K", "K", "K", "\u3000", "x@", "~", "(", ":", "-", "L1-3")


def _random_prompts(count: int) -> Iterator[str]:
    chosen = random.Random(20)
    for number in range(count):
        text = "".join(chosen.choice(PIECES + MORE) for _ in range(chosen.randint(3, 12)))
        yield (text if "K" in text else f"@K{text}").replace("K", f"k{number:03d}")


def _parts(prompt: str, key: str) -> set[str]:
    """Every piece of a prompt that could be a file's name."""
    pieces = {prompt[i:j] for i in range(len(prompt)) for j in range(i + 1, len(prompt) + 1)}
    return {piece for piece in pieces if key in piece and piece == piece.strip(JS_SPACE)}


def test_the_path_of_each_mention_is_the_file_that_the_cli_opens(tmp_path: Path) -> None:
    """Prompts of random pieces; a file exists for every piece of them."""
    base, home = tmp_path / "project", tmp_path / "home"
    base.mkdir()
    home.mkdir()
    prompts = list(_random_prompts(150))
    names: dict[str, tuple[str, str]] = {}
    for number, prompt in enumerate(prompts):
        for place, name in enumerate(sorted(_parts(prompt, f"k{number:03d}"))):
            _write(base / name, f"canary({number}.{place})")
            names[f"canary({number}.{place})"] = (prompt, name)

    run = _session(base, home, prompts)

    opened = {names[mark] for mark in _marks(run, r"canary\(\d+\.\d+\)")}
    meant = {
        (prompt, mention.path)
        for prompt in prompts
        for mention in find_mentions(prompt)
        if (base / mention.path).is_file()
    }
    assert opened == meant
    assert len(opened) > 40  # the prompts are worth something

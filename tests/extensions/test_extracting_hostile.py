"""extract_text on what was made to hurt: one sentence, within the limits, and the host goes on."""

from __future__ import annotations

import io
import json
import os
import struct
import sys
import threading
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_kit.store import StoreCode, StoreError
from agent_kit_sources.extracting import Limits, running
from agent_kit_sources.extracting.running import Extract, extract

MIB = 1024 * 1024
LIMITS = Limits(
    unpacked_bytes=64 * MIB, entries=2_000, memory_bytes=512 * MIB, cpu_seconds=4, seconds=8.0
)
ASKED = {"part": "", "sheet": "", "encoding": "", "offset": 0}

Extractor = Callable[..., Extract]


@pytest.fixture
def extracted(tmp_path: Path) -> Extractor:
    def call(name: str, data: bytes, limits: Limits = LIMITS, **asked: Any) -> Extract:
        path = tmp_path / name
        path.write_bytes(data)
        request = {**ASKED, **asked, "suffix": path.suffix}
        handle = os.open(path, os.O_RDONLY)
        try:
            return extract(handle, request, file=name, limits=limits)
        finally:
            os.close(handle)

    return call


def refused(call: Callable[[], object], tmp_path: Path) -> str:
    """The sentence: one, of the kit's own, without a place of the host's."""
    with pytest.raises(StoreError) as caught:
        call()
    sentence = str(caught.value)
    assert str(tmp_path) not in sentence
    assert "Traceback" not in sentence
    assert "\n" not in sentence
    assert len(sentence) < 600
    assert not caught.value.details
    return sentence


# --- documents ---------------------------------------------------------------------------------

RELS = '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{}</Relationships>'
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
WORD = (
    '<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">'
    "<w:body>{}</w:body></w:document>"
)
TYPES = (
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Default Extension="xml" ContentType="application/xml"/></Types>'
)
SHEET = (
    '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
    "<sheetData>{}</sheetData></worksheet>"
)


def zipped(parts: dict[str, str | bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as package:
        for name, data in parts.items():
            package.writestr(name, data)
    return buffer.getvalue()


def relation(kind: str, target: str) -> str:
    return RELS.format(f'<Relationship Id="r1" Type="{OFFICE}/{kind}" Target="{target}"/>')


def docx(body: str, head: str = "") -> bytes:
    return zipped(
        {
            "[Content_Types].xml": TYPES,
            "_rels/.rels": relation("officeDocument", "word/document.xml"),
            "word/document.xml": head + WORD.format(body),
        }
    )


def xlsx(rows: str | bytes, head: str = "") -> bytes:
    sheet = SHEET.encode().replace(b"{}", rows if isinstance(rows, bytes) else rows.encode())
    return zipped(
        {
            "[Content_Types].xml": TYPES,
            "_rels/.rels": relation("officeDocument", "xl/workbook.xml"),
            "xl/_rels/workbook.xml.rels": relation("worksheet", "worksheets/sheet1.xml"),
            "xl/workbook.xml": '<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" '
            f'xmlns:r="{OFFICE}"><sheets><sheet name="S" sheetId="1" r:id="r1"/></sheets></workbook>',
            "xl/worksheets/sheet1.xml": head.encode() + sheet,
        }
    )


def pptx(slide: str, head: str = "") -> bytes:
    names = (
        'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" '
        f'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:r="{OFFICE}"'
    )
    return zipped(
        {
            "ppt/presentation.xml": f'<p:presentation {names}><p:sldIdLst><p:sldId id="1" r:id="r1"/>'
            "</p:sldIdLst></p:presentation>",
            "ppt/_rels/presentation.xml.rels": relation("slide", "slides/slide1.xml"),
            "ppt/slides/slide1.xml": f"{head}<p:sld {names}><p:spTree>{slide}</p:spTree></p:sld>",
        }
    )


def epub(opf: str) -> bytes:
    return zipped(
        {
            "META-INF/container.xml": '<container><rootfile full-path="c.opf"/></container>',
            "c.opf": opf,
        }
    )


def pdf(*objects: bytes, more: bytes = b"") -> bytes:
    """A PDF of these objects from number 1; ``@`` in ``more`` is the place of the table itself."""
    made, places = bytearray(b"%PDF-1.4\n"), []
    for number, body in enumerate(objects, 1):
        places.append(len(made))
        made += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size, start = len(places) + 1, len(made)
    more = more.replace(b"@", b"%d" % start)
    made += b"xref\n0 %d\n0000000000 65535 f \n%s" % (size, table)
    made += b"trailer\n<</Size %d/Root 1 0 R%s>>\nstartxref\n%d\n%%%%EOF\n" % (size, more, start)
    return bytes(made)


CATALOG = b"<</Type/Catalog/Pages 2 0 R>>"
ONE_PAGE = b"<</Type/Pages/Count 1/Kids[4 0 R]>>"
FONT = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"


def page(resources: bytes = b"<</Font<</F1 3 0 R>>>>") -> bytes:
    return b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Resources %s/Contents 5 0 R>>" % resources


def stream(data: bytes, entries: bytes = b"", *, pack: bool = False) -> bytes:
    if pack:
        data, entries = zlib.compress(data, 9), entries + b"/Filter/FlateDecode"
    return b"<</Length %d%s>>stream\n%s\nendstream" % (len(data), entries, data)


FORM = b"/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X 6 0 R>>>>"
PARAGRAPH = "<w:p><w:r><w:t>{}</w:t></w:r></w:p>"
CELL = '<row r="1"><c r="A1" t="inlineStr"><is><t>{}</t></is></c></row>'


def laughs(size: int = 20) -> str:
    """Entities that stand for a quarter of a billion letters, each for many of the one before."""
    made = "".join(
        f'<!ENTITY {name} "{f"&{before};" * size}">'
        for before, name in zip("abcdef", "bcdefg", strict=True)
    )
    return f'<!DOCTYPE x [<!ENTITY a "{"a" * size}">{made}]>'


def outside(path: str = "/etc/passwd") -> str:
    return f'<!DOCTYPE x [<!ENTITY g SYSTEM "file://{path}">]>'


LATE = f"<!--{'x' * 9_000}-->"  # past what is looked at before a library parses


def lying_xlsx() -> bytes:
    """A sheet that unpacks to 50 MiB, in a package that says 100 bytes."""
    data = bytearray(xlsx(CELL.format("{}").encode().replace(b"{}", b"x" * (50 * MIB))))
    name = b"xl/worksheets/sheet1.xml"
    central, local = data.rfind(name) - 46, data.find(name) - 30
    data[central + 24 : central + 28] = data[local + 22 : local + 26] = struct.pack("<I", 100)
    return bytes(data)


def locked_zip() -> bytes:
    data = bytearray(docx(PARAGRAPH.format("x")))
    data[data.rfind(b"PK\x01\x02") + 8] |= 1
    return bytes(data)


def nested(count: int) -> str:
    opened, closed = "<w:tbl><w:tr><w:tc>", "</w:tc></w:tr></w:tbl>"
    return opened * count + PARAGRAPH.format("in") + closed * count


def groups(count: int) -> str:
    return "<p:grpSp>" * count + "</p:grpSp>" * count


DAMAGED, ENTITIES, DEEP = "is damaged, or not the", "declares XML entities", "nested too deeply"
MEMORY, TIME, LOCKED, UNPACKED = (
    "more memory than",
    "took longer than",
    "protected by",
    "unpacks to more",
)

REFUSED: list[tuple[str, str, Callable[[], bytes], str]] = [
    ("a zip bomb", "a.docx", lambda: zipped({"word/document.xml": bytes(65 * MIB)}), UNPACKED),
    ("a zip bomb as a sheet", "a.xlsx", lambda: xlsx(b" " * (65 * MIB)), UNPACKED),
    ("too many files", "a.pptx", lambda: zipped(dict.fromkeys(map(str, range(2_001)), b"")), UNPACKED),
    ("a size that is a lie", "a.xlsx", lying_xlsx, DAMAGED),
    ("an entity bomb, docx", "a.docx", lambda: docx(PARAGRAPH.format("&g;"), laughs()), ENTITIES),
    ("an entity bomb, xlsx", "a.xlsx", lambda: xlsx(CELL.format("&g;"), laughs()), ENTITIES),
    ("an entity bomb, pptx", "a.pptx", lambda: pptx("&g;", laughs()), ENTITIES),
    ("an entity bomb, epub", "a.epub", lambda: epub(f"{laughs()}<x>&g;</x>"), ENTITIES),
    ("an entity bomb in UTF-16", "a.pptx", lambda: zipped({"x.xml": laughs().encode("utf-16")}), ENTITIES),
    ("a late bomb, docx", "a.docx", lambda: docx(PARAGRAPH.format("&g;"), LATE + laughs()), DAMAGED),
    ("a late bomb, xlsx", "a.xlsx", lambda: xlsx(CELL.format("&g;"), LATE + laughs()), DAMAGED),
    ("a late bomb, pptx", "a.pptx", lambda: pptx("&g;", LATE + laughs()), ENTITIES),
    ("an outside entity, docx", "a.docx", lambda: docx(PARAGRAPH.format("&g;"), outside()), ENTITIES),
    ("an outside entity, epub", "a.epub", lambda: epub(f"{outside()}<x>&g;</x>"), ENTITIES),
    ("100,000 nested tables", "a.docx", lambda: docx(nested(100_000)), DEEP),
    ("nested groups", "a.pptx", lambda: pptx(groups(100)), DEEP),
    ("very deep XML", "a.pptx", lambda: pptx(groups(100_000)), DEEP),
    ("a cell in the last corner", "a.xlsx", lambda: xlsx('<row r="1"><c r="A1"><v>1</v></c></row>'
     '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'), MEMORY),
    ("a password, new Office", "a.docx", lambda: bytes.fromhex("d0cf11e0a1b11ae1") + bytes(600), LOCKED),
    ("an old presentation", "a.ppt", lambda: bytes.fromhex("d0cf11e0a1b11ae1") + bytes(600), LOCKED),
    ("an encrypted zip", "a.docx", locked_zip, LOCKED),
    ("a cut docx", "a.docx", lambda: docx("x" * 9_000)[:400], DAMAGED),
    ("a cut xlsx", "a.xlsx", lambda: xlsx("x" * 9_000)[:400], DAMAGED),
    ("a PDF called docx", "a.docx", lambda: pdf(CATALOG), DAMAGED),
    ("a zip without a document", "a.docx", lambda: zipped({"x": "x"}), DAMAGED),
    ("an empty docx", "a.docx", lambda: b"", DAMAGED),
    ("an empty pdf", "a.pdf", lambda: b"", DAMAGED),
    ("a cut pdf", "a.pdf", lambda: pdf(CATALOG, ONE_PAGE)[:40], DAMAGED),
    ("pages that are their own children", "a.pdf",
     lambda: pdf(CATALOG, b"<</Type/Pages/Count 3/Kids[2 0 R 2 0 R]>>"), DAMAGED),
    ("pages that multiply", "a.pdf",
     lambda: pdf(CATALOG, *(b"<</Type/Pages/Count 3/Kids[%s]>>" % (b"%d 0 R " % (n + 1) * 20)
                            for n in range(2, 12)), b"<</Type/Page>>"), DAMAGED),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "make", "reason"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_a_hostile_or_broken_document_is_refused_in_one_sentence_within_the_limits(
    extracted: Extractor, tmp_path: Path, name: str, make: Callable[[], bytes], reason: str
) -> None:
    data = make()
    start = time.monotonic()
    sentence = refused(lambda: extracted(name, data), tmp_path)
    assert reason in sentence
    assert f'"{name}"' in sentence
    assert time.monotonic() - start < LIMITS.seconds + 2


EITHER: list[tuple[str, bytes]] = [
    ("a comment that never ends", b"<!--" * 2_000_000),
    ("a million attributes", b"<a " + b'x="" ' * 2_000_000),
    ("marks without names", b"<" * 2_000_000),
]


@pytest.mark.parametrize("data", [row[1] for row in EITHER], ids=[row[0] for row in EITHER])
def test_a_web_page_that_python_reads_slowly_costs_no_more_than_the_limits(
    extracted: Extractor, data: bytes
) -> None:
    limits = replace(LIMITS, cpu_seconds=2)
    start = time.monotonic()
    try:
        assert len(extracted("a.html", data, limits).text) <= limits.characters
    except StoreError as error:  # the versions of Python differ
        assert MEMORY in str(error) or TIME in str(error)
    assert time.monotonic() - start < LIMITS.seconds + 2


def test_a_document_that_takes_too_much_processor_time_says_so(
    extracted: Extractor, tmp_path: Path
) -> None:
    limits = Limits(cpu_seconds=1)
    sentence = refused(lambda: extracted("a.html", b"<p>" * 3_000_000, limits), tmp_path)
    assert (
        "took longer than a document gets (1 seconds of processor time, 60 by the clock)"
        in sentence
    )


BORNE: list[tuple[str, str, Callable[[], bytes], str]] = [
    ("some nested tables", "a.docx", lambda: docx(nested(15)), "in"),
    ("a table of references that leads to itself", "a.pdf",
     lambda: pdf(CATALOG, ONE_PAGE, FONT, page(), stream(b"BT /F1 9 Tf (hi) Tj ET"), more=b"/Prev @"), "hi"),
    ("a PDF that says it has a billion pages", "a.pdf",
     lambda: pdf(CATALOG, ONE_PAGE.replace(b"Count 1", b"Count 1000000000"), FONT, page(),
                 stream(b"BT /F1 9 Tf (hi) Tj ET")), "hi"),
    ("a page that is its own parent", "a.pdf",
     lambda: pdf(CATALOG, ONE_PAGE, FONT, b"<</Type/Page/Parent 4 0 R/Contents 5 0 R>>", stream(b"")), "Page 1"),
    ("a form that draws itself", "a.pdf",
     lambda: pdf(CATALOG, ONE_PAGE, FONT, page(b"<</XObject<</X 6 0 R>>>>"), stream(b"/X Do"),
                 stream(b"/X Do /X Do", FORM)), "Page 1"),
    ("a stream that unpacks to 100 MiB", "a.pdf",
     lambda: pdf(CATALOG, ONE_PAGE, FONT, page(), stream(b"\n" * (100 * MIB), pack=True)), "can't be read"),
    ("100,000 nested lists in a PDF", "a.pdf",
     lambda: pdf(CATALOG, ONE_PAGE, b"[" * 100_000 + b"]" * 100_000, page(),
                 stream(b"BT /F1 9 Tf (hi) Tj ET")), "Page 1"),
    ("deep divs", "a.html", lambda: b"<div>" * 200_000 + b"<p>in", "in"),
    ("deep lists", "a.html", lambda: b"<ul><li>" * 100_000 + b"in", "- in"),
    ("deep quotes", "a.html", lambda: b"<blockquote>" * 100_000 + b"in", "> in"),
    ("deep tables", "a.html", lambda: b"<table><tr><td>" * 100_000 + b"in", "in"),
    ("closings without openings", "a.html",
     lambda: b"</table></td></tr></ul></li></a></pre></blockquote></svg>in", "in"),
    ("an unclosed quote", "a.csv", lambda: b'a,"b\n' + b"x,y\n" * 300_000, "| 1 | a | b<br>x,y"),
    ("a million rows", "a.csv", lambda: b"1,2\n" * 1_000_000, "| 1 | 1 | 2 |"),
    ("a sheet of many rows", "a.xlsx",
     lambda: xlsx("".join(f'<row r="{n}"><c r="A{n}"><v>{n}</v></c></row>' for n in range(1, 100_001))),
     "| 1 | 1 |"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "make", "text"), [row[1:] for row in BORNE], ids=[row[0] for row in BORNE]
)
def test_an_odd_document_is_read_as_far_as_it_goes(
    extracted: Extractor, name: str, make: Callable[[], bytes], text: str
) -> None:
    assert text in extracted(name, make()).text


@pytest.mark.parametrize("name", ["a.docx", "a.pptx", "a.xlsx"])
def test_nothing_of_another_file_gets_into_a_document(
    extracted: Extractor, tmp_path: Path, name: str
) -> None:
    (tmp_path / "secret").write_text("canary")
    head = LATE + outside(str(tmp_path / "secret"))
    made = {
        "a.docx": lambda: docx(PARAGRAPH.format("&g;"), head),
        "a.xlsx": lambda: xlsx(CELL.format("&g;"), head),
        "a.pptx": lambda: pptx("<p:sp><a:p><a:t>&g;</a:t></a:p></p:sp>", head),
    }
    try:
        text = extracted(name, made[name]()).text
    except StoreError as error:
        text = str(error)
    assert "canary" not in text


def test_rows_are_found_at_the_end_of_a_million(extracted: Extractor) -> None:
    found = extracted("a.csv", b"1,2\n" * 999_999 + b"last,row", part="1000000")
    assert found.count == 1_000_000
    assert found.text.endswith("| 1000000 | last | row |")


# --- the child ---------------------------------------------------------------------------------

OK = Extract(
    kind="text", unit="", count=1, facts="", text="fine", first=1, last=1, end=1, length=4,
    next_part=0, next_offset=0,
)  # fmt: skip
ANSWER = json.dumps({name: getattr(OK, name) for name in OK.__slots__})

CHILDREN = [
    ("dies", "os._exit(3)", "failed"),
    ("is killed", "os.kill(os.getpid(), 9)", "failed"),
    ("crashes", "import ctypes; ctypes.string_at(0)", "failed"),
    ("raises", "raise SystemError('canary')", "failed"),
    ("gives up for want of memory", "os.abort()", MEMORY),
    ("computes for ever", "import resource; resource.setrlimit(resource.RLIMIT_CPU, (1, 3))\nwhile 1: pass", TIME),
    ("sleeps", "time.sleep(60)", TIME),
    ("closes its answer and sleeps", "os.close(1); time.sleep(60)", "failed"),
    ("writes slowly for ever", "while 1: os.write(1, b' '); time.sleep(0.05)", TIME),
    ("writes without end", "while 1: os.write(1, b'x' * 65536)", "failed"),
    ("writes rubbish", "os.write(1, bytes(range(256)))", "failed"),
    ("writes half an answer", "os.write(1, ANSWER[:-9])", "failed"),
    ("writes an answer of other things", "os.write(1, b'[1, 2]')", "failed"),
    ("writes an answer without its fields", "os.write(1, b'{\"text\": \"canary\"}')", "failed"),
    ("writes numbers for text", "os.write(1, ANSWER.replace(b'\"fine\"', b'7'))", "failed"),
    ("writes truths for numbers", "os.write(1, ANSWER.replace(b'4', b'true'))", "failed"),
    ("writes a longer text than was asked for", "os.write(1, ANSWER.replace(b'fine', b'x' * 20001))", "failed"),
    ("writes deeply nested JSON", "os.write(1, b'[' * 500000)", "failed"),
    ("says a fault that is unknown", "os.write(1, b'{\"fault\": \"{0.__class__}\"}')", "failed"),
    ("says a fault without its details", "os.write(1, b'{\"fault\": \"no-part\", \"details\": 3}')", "failed"),
    ("starts another that holds the pipe",
     "os.fork() and os._exit(0); PID(); time.sleep(60)", TIME),
]  # fmt: skip


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts another program in the child's place."""

    def put(code: str) -> None:
        path = tmp_path / "program.py"
        path.write_text(f"import os, sys, time\nANSWER = {ANSWER.encode()!r}\n{code}\n")
        monkeypatch.setattr(running, "CHILD", str(path))

    return put


def has_ended(pid: int) -> bool:
    """Whether a process is gone, or dead and waiting for init."""
    for _ in range(50):
        try:
            status = Path(f"/proc/{pid}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return True
        if status.rpartition(")")[2].split()[0] in "ZX":
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize(
    ("code", "reason"), [row[1:] for row in CHILDREN], ids=[row[0] for row in CHILDREN]
)
def test_whatever_the_child_does_it_is_one_sentence_and_the_child_is_gone(
    extracted: Extractor,
    program: Callable[[str], None],
    tmp_path: Path,
    code: str,
    reason: str,
) -> None:
    place = str(tmp_path / "pid")
    program(f"def PID(): open({place!r}, 'w').write(str(os.getpid()))\nPID()\n{code}")
    limits = Limits(seconds=2.0)
    start = time.monotonic()
    sentence = refused(lambda: extracted("a.txt", b"x", limits), tmp_path)
    assert time.monotonic() - start < 6
    assert reason in sentence
    assert "canary" not in sentence
    assert has_ended(int((tmp_path / "pid").read_text()))


def test_an_answer_of_the_right_shape_is_taken_with_nothing_hidden_in_it(
    extracted: Extractor, program: Callable[[str], None]
) -> None:
    program("os.write(1, ANSWER)")
    assert extracted("a.txt", b"x") == OK
    program("os.write(1, ANSWER.replace(b'fine', rb'a\\u202eb'))")
    assert extracted("a.txt", b"x").text == "a\\u202eb"


def test_the_child_is_isolated_and_gets_nothing_of_the_host_s(
    extracted: Extractor, program: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "canary")
    monkeypatch.setenv("PYTHONSTARTUP", "canary")
    read, write = os.pipe()
    os.set_inheritable(read, True)
    try:
        program(
            "import json\n"
            "seen = [dict(os.environ), sys.argv, os.getcwd(), sys.flags.isolated,"
            " sorted(map(int, os.listdir('/proc/self/fd')))[:-1], os.getsid(0) == os.getpid()]\n"
            "os.write(1, json.dumps({**json.loads(ANSWER), 'text': json.dumps(seen)}).encode())"
        )
        found = extracted("a.txt", b"x", part="1")
    finally:
        os.close(read)
        os.close(write)
    environment, arguments, folder, isolated, handles, leads = json.loads(found.text)
    assert set(environment) <= {"LD_LIBRARY_PATH", "LC_CTYPE"}
    assert json.loads(arguments[1])["part"] == "1"
    assert len(arguments) == 2
    assert (folder, isolated, handles, leads) == ("/", 1, [0, 1, 2], True)


def test_the_child_holds_itself_to_its_limits_before_it_reads(
    extracted: Extractor, program: Callable[[str], None]
) -> None:
    program(
        "import json, resource, runpy\n"
        f"child = runpy.run_path({running.CHILD!r})\n"
        "child['_hold'](json.loads(sys.argv[1])['limits'])\n"
        "names = ('AS', 'CPU', 'FSIZE', 'CORE', 'NPROC', 'NOFILE')\n"
        "seen = [resource.getrlimit(getattr(resource, f'RLIMIT_{name}')) for name in names]\n"
        "os.write(1, json.dumps({**json.loads(ANSWER), 'text': json.dumps(seen)}).encode())"
    )
    assert json.loads(extracted("a.txt", b"x").text) == [
        [512 * MIB, 512 * MIB],
        [4, 6],
        [0, 0],
        [0, 0],
        [0, 0],
        [64, 64],
    ]


@pytest.fixture
def slots() -> Iterator[threading.BoundedSemaphore]:
    held = running._AT_ONCE
    assert held.acquire(timeout=0)
    assert held.acquire(timeout=0)
    yield held
    held.release()
    held.release()


def test_no_more_than_two_documents_are_read_at_once(
    extracted: Extractor, tmp_path: Path, slots: threading.BoundedSemaphore
) -> None:
    limits = Limits(waiting_seconds=0.1)
    assert "Other documents are being read" in refused(
        lambda: extracted("a.txt", b"x", limits), tmp_path
    )


def test_a_turn_is_given_back_after_a_failure(
    extracted: Extractor, program: Callable[[str], None], tmp_path: Path
) -> None:
    program("os._exit(1)")
    for _ in range(3):
        refused(lambda: extracted("a.txt", b"x", Limits(waiting_seconds=0.1)), tmp_path)


def test_an_interpreter_that_cannot_be_started_is_one_sentence(
    extracted: Extractor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("", str(tmp_path / "absent")):
        monkeypatch.setattr(sys, "executable", name)
        assert "failed" in refused(lambda: extracted("a.txt", b"x"), tmp_path)


def test_the_codes_of_what_is_too_large_say_so(extracted: Extractor) -> None:
    with pytest.raises(StoreError) as caught:
        extracted("a.docx", zipped({"x": bytes(65 * MIB)}))
    assert caught.value.code is StoreCode.TOO_LARGE

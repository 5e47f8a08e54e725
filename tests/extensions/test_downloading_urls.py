"""URLs, names of hosts and of files, and what the host of a session may say of downloads."""

from __future__ import annotations

import socket
import time
from pathlib import Path
from typing import Any

import pytest

from agent_kit.scope import ConfigError
from agent_kit.store import StoreError
from agent_kit_sources.downloading import Downloads, Network
from agent_kit_sources.downloading.naming import best_name, header_name, url_name
from agent_kit_sources.downloading.options import look_up
from agent_kit_sources.downloading.urls import matches, parse_url, redirected

REFUSED = [
    ("", "empty"),
    ("files.example/a.pdf", "no scheme"),
    ("ftp://files.example/a", "another scheme"),
    ("file:///etc/passwd", "a file"),
    ("data:text/plain,x", "no place"),
    ("javascript:alert(1)", "a program"),
    ("http:", "no host"),
    ("http:///a", "no host"),
    ("https:files.example/a", "no host"),
    ("http://?q", "no host"),
    ("http://me@files.example/", "a user"),
    ("http://me:secret@files.example/", "a password"),
    ("http://@files.example/", "an empty user"),
    ("http://files.example:x/", "a port of letters"),
    ("http://files.example:0/", "port 0"),
    ("http://files.example:65536/", "a port too high"),
    ("http://files.example:８０/", "a port in other digits"),
    ("http://files.example:80:80/", "two ports"),
    ("http://files.example\\@other.example/", "a backslash"),
    ("http://files.example/a\\b", "a backslash in the path"),
    ("http://files.exam\tple/", "a tab, which parsers leave out"),
    ("http://files.exam\nple/", "a line end"),
    ("http://files.example/a b", "a space"),
    ("http://files.example/a\u202eb", "an invisible character"),
    ("http://files%2eexample/", "an encoded host"),
    ("http://files..example/", "an empty label"),
    ("http://files.example../", "two dots at the end"),
    ("http://./", "a dot"),
    ("http://-files.example/", "a hyphen at the start"),
    ("http://fi!les.example/", "no letter"),
    (f"http://{'a' * 64}.example/", "a long label"),
    (f"http://{'a.' * 130}example/", "a long name"),
    ("http://ex\u2100mple.example/", "a sign that becomes a slash"),
    ("http://2130706433/", "IPv4 in one number"),
    ("http://0x7f000001/", "IPv4 in hex"),
    ("http://0x7f.0.0.1/", "IPv4 with hex"),
    ("http://127.0.0.0x1/", "IPv4 with hex at its end"),
    ("http://0177.0.0.1/", "IPv4 in octal"),
    ("http://127.1/", "IPv4, short"),
    ("http://127.0.1/", "IPv4, short"),
    ("http://0/", "IPv4, shortest"),
    ("http://127.0.0.1.5/", "five numbers"),
    ("http://256.0.0.1/", "a number too high"),
    ("http://127.0.0.01/", "a zero at the start"),
    ("http://134744072/", "a public IPv4 address in one number"),
    ("http://0x/", "hex without a digit"),
    ("http://[::1/", "half a bracket"),
    ("http://[::1]x/", "more after the bracket"),
    ("http://[fe80::1%25eth0]/", "a zone"),
    ("http://[fe80::1%eth0]/", "a zone, not encoded"),
    ("http://[127.0.0.1]/", "IPv4 in brackets"),
    ("http://[v1.x]/", "a form of the future"),
    ("http://::1/", "IPv6 without brackets"),
    (f"http://files.example/{'a' * 4096}", "too long"),
]


@pytest.mark.parametrize("url", [row[0] for row in REFUSED], ids=[row[1] for row in REFUSED])
def test_a_url_that_two_programs_may_read_in_two_ways_is_refused(url: str) -> None:
    with pytest.raises(StoreError) as caught:
        parse_url(url)
    assert "give an http:// or https:// URL" in str(caught.value)
    assert "secret" not in str(caught.value)


READ = [
    ("https://files.example/a.pdf", "https://files.example/a.pdf"),
    (" HTTPS://FILES.Example/A.pdf#part ", "https://files.example/A.pdf"),
    ("http://files.example", "http://files.example/"),
    ("http://files.example.:80/?q=1#x", "http://files.example/?q=1"),
    ("http://files.example:8080/", "http://files.example:8080/"),
    ("https://files.example:80/", "https://files.example:80/"),
    ("http://files.example:/", "http://files.example/"),
    ("http://my_files.example/ü%20x?ü", "http://my_files.example/%C3%BC%20x?%C3%BC"),
    ('http://files.example/<"`{|}>', "http://files.example/%3C%22%60%7B%7C%7D%3E"),
    ("http://Bücher.example/", "http://xn--bcher-kva.example/"),
    ("http://faß.example/", "http://xn--fa-hia.example/"),
    ("http://ﬁles。example/", "http://files.example/"),
    ("http://１２７.０.０.１/", "http://127.0.0.1/"),
    ("http://①②⑦.0.0.1/", "http://127.0.0.1/"),
    ("http://127.0.0.1./", "http://127.0.0.1/"),
    ("http://[0:0::1]/", "http://[::1]/"),
    ("http://[::FFFF:10.0.0.1]:80/", "http://[::ffff:a00:1]/"),
]


@pytest.mark.parametrize(("written", "read"), READ)
def test_a_url_has_one_spelling(written: str, read: str) -> None:
    url = parse_url(written)
    assert str(url) == read.replace("::ffff:a00:1", url.host if ":" in url.host else "")
    assert str(url).isascii()
    assert str(parse_url(str(url))) == str(url)


@pytest.mark.parametrize(
    "written",
    ["http://127.0.0.1./", "http://１２７.０.０.１/", "http://[::1]/", "http://[::ffff:7f00:1]"],
)
def test_a_host_that_is_an_address_is_known_as_one(written: str) -> None:
    address = parse_url(written).address
    assert address is not None
    assert Network().guard.why_not(address)


def test_a_url_is_told_without_its_query() -> None:
    told = parse_url("https://files.example/a.pdf?token=secret#x").told
    assert told == "https://files.example/a.pdf?…"
    assert parse_url("https://files.example/a.pdf").told == "https://files.example/a.pdf"


ONWARD = [
    ("/b", "https://files.example/b"),
    ("b?c", "https://files.example/x/b?c"),
    ("//other.example/b", "https://other.example/b"),
    ("https://other.example:444", "https://other.example:444/"),
    ("?d", "https://files.example/x/a?d"),
]


@pytest.mark.parametrize(("location", "url"), ONWARD)
def test_a_redirect_is_read_from_where_it_was_given(location: str, url: str) -> None:
    assert str(redirected(parse_url("https://files.example/x/a"), location)) == url


@pytest.mark.parametrize(
    "location",
    [
        "http://files.example/",
        "ftp://x.example/",
        "https://me:pw@x.example/",
        "https://[::1",
        "//0x1/",
    ],
)
def test_a_redirect_to_what_no_call_may_name_is_refused(location: str) -> None:
    with pytest.raises(StoreError):
        redirected(parse_url("https://files.example/a"), location)


ON_THE_LIST = ("example.org", "*.data.example", "BÜCHER.example.")
HOSTS = [
    ("example.org", True, "named"),
    ("www.example.org", False, "below one that is named"),
    ("notexample.org", False, "ends alike"),
    ("example.org.evil.example", False, "begins alike"),
    ("a.data.example", True, "below"),
    ("b.a.data.example", True, "far below"),
    ("data.example", False, "the pattern's own name"),
    ("xdata.example", False, "ends alike, without a dot"),
    ("xn--bcher-kva.example", True, "in another script"),
    ("93.184.215.14", False, "an address"),
]


@pytest.mark.parametrize(("host", "is_allowed", "why"), HOSTS)
def test_a_list_of_hosts_means_these_names(host: str, is_allowed: bool, why: str) -> None:
    assert matches(host, Downloads(hosts=ON_THE_LIST).hosts) is is_allowed, why


FAULTS: list[tuple[dict[str, Any], tuple[str, ...]]] = [
    ({"hosts": ()}, ("hosts",)),
    ({"hosts": "example.org"}, ("hosts",)),
    ({"hosts": ("https://example.org", "a b", 3, "", "*", "*.", "a.*.b")}, ("hosts",) * 7),
    ({"hosts": ("127.0.0.1", "[::1]", "example.org:80")}, ("hosts",) * 3),
    ({"ports": ()}, ("ports",)),
    ({"ports": (0, 65536, True, "80")}, ("ports",) * 4),
    ({"max_bytes": 0}, ("max_bytes",)),
    ({"max_bytes": 50 * 1024**2 + 1}, ("max_bytes",)),
    ({"seconds": 0, "idle_seconds": float("inf")}, ("seconds", "idle_seconds")),
    ({"seconds": float("nan"), "idle_seconds": "5"}, ("seconds", "idle_seconds")),
    ({"past_proxy": 1, "progress": "print", "hosts": ("*",)}, ("hosts", "past_proxy", "progress")),
]


@pytest.mark.parametrize(("fields", "names"), FAULTS)
def test_all_that_is_wrong_with_the_options_is_said_at_once(
    fields: dict[str, Any], names: tuple[str, ...]
) -> None:
    with pytest.raises(ConfigError) as caught:
        Downloads(**fields)
    assert tuple(fault.field for fault in caught.value.faults) == tuple(
        f"downloads.{name}" for name in names
    )


PROXIES = [
    ({}, None),
    ({"HTTPS_PROXY": "http://p:1"}, "HTTPS_PROXY"),
    ({"http_proxy": "http://p:1", "NO_PROXY": "files.example"}, "http_proxy"),
    ({"ALL_PROXY": "socks5://p:1"}, "ALL_PROXY"),
    ({"HTTPS_PROXY": " "}, None),
    ({"HTTPS_PROXY": "http://p:1", "no_proxy": "*"}, None),
]


@pytest.mark.parametrize(("env", "variable"), PROXIES)
def test_a_proxy_of_the_environment_is_noticed(env: dict[str, str], variable: str | None) -> None:
    assert Network(env=env).proxy() == variable


CALLED = [
    ("attachment", ""),
    ("", ""),
    ("attachment; filename=a.pdf", "a.pdf"),
    ('attachment; filename="a b.pdf"', "a b.pdf"),
    ("attachment; filename*=UTF-8''%E7%9F%A5.pdf", "知.pdf"),
    ('attachment; filename="../../x.md"', "x.md"),
    ('attachment; filename="C:\\\\x\\\\y.md"', "y.md"),
    ("attachment; filename*=UTF-8''..%2F..%2Fy.md", "y.md"),
    ("attachment; filename=x.pdf; filename*=UTF-8''%C3%BC.pdf", "ü.pdf"),
    ("attachment; FileName*=UTF-8''%C3%BC.pdf; filename=x.pdf", "ü.pdf"),
    ("attachment; filename*=no-such''%FF", None),
    ("attachment; filename*=UTF-8", None),
    (";" * 900, ""),
    ("x; filename=" + "a" * 1000, ""),
]


@pytest.mark.parametrize(("header", "name"), CALLED)
def test_what_the_server_calls_a_file_is_one_name(header: str, name: str | None) -> None:
    found = header_name(header)
    assert "/" not in found
    assert "\\" not in found
    assert name is None or found == name


BEST = [
    (("", "a.pdf", "b"), "a.pdf"),
    (("CLAUDE.md", "a.pdf"), "a.pdf"),
    ((".mcp.json", "..", "nul", "a\nb.txt", "view"), "view"),
    (("view", "2301.00001", "paper.pdf"), "paper.pdf"),
    (("view", "get"), "view"),
    (("", ".", "AGENTS.md"), None),
]


@pytest.mark.parametrize(("candidates", "name"), BEST)
def test_a_name_from_outside_is_taken_only_when_the_rules_allow_it(
    candidates: tuple[str, ...], name: str | None
) -> None:
    assert best_name(candidates) == name


def test_the_name_of_a_url_is_the_last_in_its_path() -> None:
    for url, name in (
        ("https://files.example/x/a%20b.pdf?c=d/e.txt", "a b.pdf"),
        ("https://files.example/x%2F..%2Fy.md", "y.md"),
        ("https://files.example/x/", ""),
        ("https://files.example", ""),
    ):
        assert url_name(parse_url(url)) == name


def test_a_look_up_that_takes_too_long_gives_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_a, **_k: time.sleep(1) or [])
    start = time.monotonic()
    assert look_up("files.example", 80, 0.05) == ()
    assert time.monotonic() - start < 0.9


def test_a_look_up_gives_each_address_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        (2, 1, 6, "", ("127.0.0.1", 80)),
        (2, 1, 6, "", ("127.0.0.1", 80)),
        (10, 1, 6, "", ("::1", 80, 0, 0)),
    ]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_a, **_k: rows)
    assert look_up("files.example", 80, 5) == ("127.0.0.1", "::1")

    def unknown(*_a: object, **_k: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    assert look_up("files.example", 80, 5) == ()


def test_the_http_client_is_loaded_when_something_is_downloaded() -> None:
    import subprocess
    import sys

    code = "import sys, agent_kit_sources.downloading; sys.exit('httpcore2' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2]).returncode == 0
    )

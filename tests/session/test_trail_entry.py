"""What a line of the decision trail says of a call, and what it never says."""

from __future__ import annotations

import itertools
import json
import subprocess
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given as whatever
from hypothesis import strategies as st

from agent_kit.policy.judged import Judged
from agent_kit.session.trail_entry import (
    MAX_LINE,
    MAX_NAME,
    MAX_SHORT,
    MAX_TARGET,
    MAX_VALUE,
    entry_of,
    line_of,
    lost_line,
)
from agent_kit.session.trail_secrets import CUT, without_secrets

CONTENT = "canary-of-a-files-content"
SECRET = "Zk9canary4711Qw8Lm2Xc7"  # of no known form: only what stands around it tells


def judged(tool: str = "Read", given: Any = None, **fields: Any) -> Judged:
    base = {"session_id": "s-1", "verdict": "allow", "lock": "gate", "tool": tool}
    return Judged(**{**base, "tool_input": {} if given is None else given, **fields})


def target(tool: str, given: Any) -> str | None:
    found = entry_of(judged(tool, given))["target"]
    assert found is None or isinstance(found, str)
    return found


def line(tool: str, given: Any, **fields: Any) -> str:
    return line_of(0.0, entry_of(judged(tool, given, **fields))).decode()


def test_a_line_tells_the_call_and_what_was_decided_in_this_order() -> None:
    call = judged(
        "Write",
        {"file_path": "drafts/a.md", "content": "äb"},
        agent="writer",
        agent_id="a-2",
        tool_use_id="toolu_1",
        verdict="deny",
        code="denied",
        lock="rules",
        rule="SessionConfig.permissions[3]",
        milliseconds=1.23456,
        asked=True,
        answer="rejected",
    )
    assert list(json.loads(line_of(1764460800.1239, entry_of(call))).items()) == [
        ("time", "2025-11-30T00:00:00.123Z"),
        ("session", "s-1"),
        ("agent", "writer"),
        ("agent_id", "a-2"),
        ("tool", "Write"),
        ("tool_use_id", "toolu_1"),
        ("target", "drafts/a.md"),
        ("sizes", {"content": 3}),
        ("verdict", "deny"),
        ("code", "denied"),
        ("lock", "rules"),
        ("rule", "SessionConfig.permissions[3]"),
        ("ms", 1.235),
        ("asked", True),
        ("answer", "rejected"),
    ]


def test_lost_lines_are_a_line_with_their_number() -> None:
    assert json.loads(lost_line(0.0, 7)) == {"time": "1970-01-01T00:00:00.000Z", "lost": 7}


@pytest.mark.parametrize(
    ("tool", "given", "expected"),
    [
        ("Read", {"file_path": "/work/a.md", "offset": 3}, "/work/a.md"),
        ("NotebookEdit", {"notebook_path": "n.ipynb", "new_source": "x"}, "n.ipynb"),
        ("Write", {"file_path": "a", "path": "b", "content": "x"}, "a, b"),  # both are judged
        ("Write", {"file_path": "a", "path": "a", "content": "x"}, "a"),
        ("Grep", {"pattern": "x"}, "."),  # the working folder is meant
        ("Grep", {"pattern": "x", "path": "src"}, "src"),
        ("Glob", {"pattern": "/etc/*"}, ". (pattern /etc/*)"),  # it names files, too
        ("Read", {}, None),
        ("Read", {"file_path": 'a\n"b\x1b[2J\u202e'}, r"a\n\"b\x1b[2J\u202e"),
        ("Read", {"file_path": 7}, "7"),
        ("Read", {"file_path": {"a": 1}}, "<dict>"),
        ("Bash", {"command": 'echo "hi"\nls'}, r'command="echo \"hi\"\nls"'),
        ("Bash", {"description": "d", "command": "ls"}, 'command="ls", description="d"'),
        ("WebFetch", {"prompt": "p", "url": "https://a.b/c"}, 'url="https://a.b/c", prompt="p"'),
        ("mcp__x__y", {"a": [1, True, None, {"b": 2.5}]}, "a=[1, True, None, {b=2.5}]"),
        ("mcp__x__y", {"z": 1, "log_path": "p"}, 'log_path="p", z=1'),  # paths come first
        ("mcp__x__y", {}, None),
        ("mcp__x__y", {"a": list(range(30))}, f"a=[{', '.join(map(str, range(20)))}… (+10 more)]"),
        ("mcp__x__y", {"a": 2**200, "b": object()}, "a=<int>, b=<object>"),
        ("mcp__x__y", {1: 2, None: 3}, "1=2, None=3"),
    ],
)
def test_the_target_of_a_file_tool_is_its_path_and_of_others_their_input_in_short(
    tool: str, given: Any, expected: str | None
) -> None:
    assert target(tool, given) == expected


def test_a_long_path_is_cut_and_says_by_how_much() -> None:
    found = target("Read", {"file_path": "a" * (MAX_TARGET + 17)})
    assert found == "a" * MAX_TARGET + "… (+17 characters)"
    assert target("Read", {"file_path": "a" * MAX_TARGET}) == "a" * MAX_TARGET
    huge = target("Read", {"file_path": "a" * 10**6})
    assert huge == "a" * MAX_TARGET + f"… (+{10**6 - MAX_TARGET} characters)"


def test_a_long_value_is_cut_and_says_by_how_much() -> None:
    found = target("Bash", {"command": "a" * (MAX_VALUE + 5000), "timeout": 5})
    assert found == f'command="{"a" * MAX_VALUE}… (+5000 characters)", timeout=5'


def test_a_long_name_is_cut_and_says_by_how_much() -> None:
    assert (
        entry_of(judged("t" * 1000))["tool"]
        == "t" * MAX_NAME + f"… (+{1000 - MAX_NAME} characters)"
    )


def test_padding_does_not_push_the_command_out() -> None:
    padding = {f"a{number}": "x" * 20_000 for number in range(50)}
    found = target("Bash", {**padding, "command": "rm -rf drafts"})
    assert found is not None and found.startswith('command="rm -rf drafts"')


@pytest.mark.parametrize(
    ("tool", "given", "sizes"),
    [
        ("Write", {"file_path": "a", "content": CONTENT}, {"content": 25}),
        ("Edit", {"old_string": CONTENT, "new_string": "äö"}, {"old_string": 25, "new_string": 4}),
        ("NotebookEdit", {"notebook_path": "n", "new_source": CONTENT}, {"new_source": 25}),
        (
            "MultiEdit",
            {"file_path": "a", "edits": [{"old_string": CONTENT, "new_string": "b"}] * 2},
            {"edits": 52},
        ),
        ("Write", {"content": [CONTENT, {"a": CONTENT.encode()}]}, {"content": 50}),
        ("mcp__files__write", {"fileContent": CONTENT}, {"fileContent": 25}),
        (
            "mcp__files__edit",
            {"new-text": CONTENT, "newStr": CONTENT},
            {"new-text": 25, "newStr": 25},
        ),
        ("mcp__files__many", {"all": [{"path": "p", "text": CONTENT}]}, None),
        ("Bash", {"command": f"cat > f <<'EOF'\n{CONTENT}\nEOF\nls"}, None),
        ("Bash", {"command": f"cat > f <<-END && ls\n\ta\n\t{CONTENT}"}, None),
        ("TodoWrite", {"todos": [{"content": CONTENT, "status": "x"}]}, None),
        ("Grep", {"pattern": CONTENT, "path": "src"}, None),
    ],
)
def test_of_content_nothing_is_told_but_its_bytes(
    tool: str, given: Any, sizes: dict[str, int] | None
) -> None:
    found = line(tool, given)
    assert CONTENT[7:] not in found
    assert json.loads(found)["sizes"] == sizes


NAMES = (
    *("markdown", "html", "code", "value", "lines", "replacement", "file_contents", "yaml", "cell"),
    *("bodyHtml", "whatever", "essay"),
)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("wrap", [str, lambda text: [text], lambda text: [[text]]])
def test_of_an_mcp_tools_field_nothing_is_told_but_its_bytes_unless_its_name_says_what_it_is(
    name: str, wrap: Any
) -> None:
    words = CONTENT + "x" * MAX_SHORT
    found = line("mcp__f__put", {"path": "a", name: wrap(words)})
    assert CONTENT[7:] not in found
    assert json.loads(found)["sizes"] == {name: len(words)}
    assert f"{name}=<{len(words)} bytes>" in json.loads(found)["target"]
    assert name in NAMES[-3:] or CONTENT[7:] not in line("mcp__f__put", {name: wrap(CONTENT)})


@pytest.mark.parametrize(
    ("name", "told"),
    [
        *((name, True) for name in ("path", "log_path", "page_id", "pageId", "id", "query", "url")),
        *((name, True) for name in ("file_name", "q", "pattern")),
        *((name, False) for name in ("title", "subject", "hidden", "acid", "prompt")),
    ],
)
def test_a_long_value_of_an_mcp_tool_is_told_where_it_is_a_path_an_id_or_a_query(
    name: str, told: bool
) -> None:
    long = "a" * (MAX_SHORT + 1)
    found = target("mcp__f__put", {name: long})
    assert found == (f'{name}="{long}"' if told else f"{name}=<{MAX_SHORT + 1} bytes>")
    assert target("mcp__f__put", {name: long[1:]}) == f'{name}="{long[1:]}"'
    assert target("Other", {name: long}) == f'{name}="{long}"'


def test_a_text_in_many_short_fields_of_an_mcp_tool_is_not_told() -> None:
    words = {f"part{number}": "some of it" for number in range(9)}
    for given in ({"all": words}, {"all": [words]}, {"all": [{"path": "p", **words}]}):
        assert "some of it" not in line("mcp__f__put", given)
    assert target("mcp__f__put", {"all": [{"path": "p", "n": 2, "w": "x"}]}) == (
        'all=[{path="p", n=2, w=<1 bytes>}]'
    )


def test_what_surrounds_a_here_document_is_told() -> None:
    found = target("Bash", {"command": f"cat > f <<EOF\n{CONTENT}\nEOF\nls"})
    assert found == r'command="cat > f <<EOF\n[here-document: 25 characters]\nEOF\nls"'


@pytest.mark.parametrize(
    "opening",
    [
        "cat <<'THE END' > f\n<body>\nTHE END",
        "cat <<\"it's\" > f\n<body>\nit's",
        "cat <<\\EOF > f\n<body>\nEOF",
        "cat <<E'O'F > f\n<body>\nEOF",
        "cat <<- '---' > f\n\t<body>\n\t---",
        "cat <<! > f\n<body>\n!",
        "cat <<1 > f\n<body>\n1",
        "cat <<Ende·文 > f\n<body>\nEnde·文",
        f"cat <<{'E' * 90} > f\n<body>\n{'E' * 90}",
        "cat <<A - <<B > f\nfirst\nA\n<body>\nB",
        "cat <<A <<A > f\nfirst\nA\n<body>\nA",
        "echo $((1<<2)) && cat <<EOF > f\n<body>\nEOF",
        "cat <<EOF \\\n > f\n<body>\nEOF",
        "cat <<'never' > f\n<body>",
        "cat > f <<EOF\n  EOF\n<body>\nEOF",
        "cat > f <<EOF\nEOF \n<body>\nEOF",
        "cat > f <<-EOF\n EOF\n<body>\n\tEOF",
        "(cat <<EOF) > f\n<body>\nEOF",
        "x=$(cat <<EOF)\n<body>\nEOF",
        "echo '((' ; cat > f <<EOF\n<body>\nEOF",
        "cat <<A - \\\n3<<B > f\nfirst\nA\n<body>\nB",
        "cat << \\\nEOF > f\n<body>\nEOF",
        "cat <<\u00a0EOF > f\n<body>\n\u00a0EOF",
        "cat <<'a\nb' > f\n<body>\nnever",
        "git commit -m \"$(cat <<'EOF'\n<body>\nEOF\n)\"",
        'echo "it\'s"; cat > f <<EOF\n<body>\nEOF',
        "cat 3<<EOF <&3 > f\n<body>\nEOF",
    ],
)
def test_no_here_document_is_told_however_its_end_is_written(opening: str) -> None:
    command = opening.replace("<body>", CONTENT) + "\necho next"
    ran = subprocess.run(["bash", "-n", "-c", command], capture_output=True, check=False)
    assert ran.returncode == 0, ran.stderr
    told = line("Bash", {"command": command})
    assert CONTENT not in told
    assert "[here-document: " in told
    assert told.count("echo next") == ("never" not in opening)


@pytest.mark.parametrize(
    "command",
    ["cat <<< word\nls", "echo $((1<<n))\nls", "x << 2\nls", "echo 'a <<X'\nrm -rf y"],
)
def test_what_is_no_here_document_is_told_whole(command: str) -> None:
    assert target("Bash", {"command": command}) == f'command="{command}"'.replace("\n", r"\n")


TOKENS = [  # in two parts, or those who look for keys in repositories would find them
    ("sk-ant-" + "api03-", "A1b2C3d4-E5f6_G7h8"),
    ("sk-" + "proj-", "A1b2C3d4E5f6G7h8"),
    ("ghp" + "_", "A1b2C3d4E5f6G7h8I9j0"),
    ("github" + "_pat_", "A1b2C3d4E5f6G7h8I9j0"),
    ("glpat" + "-", "A1b2C3d4E5f6G7h8I9j0"),
    ("xoxb" + "-", "123456789-A1b2C3d4E5f6"),
    ("AKIA", "A1B2C3D4E5F6G7H8"),
    ("AIza", "A1b2C3d4E5f6G7h8I9j0A1b2C3d4E5f6G7h"),
    ("sk" + "_live_", "A1b2C3d4E5f6G7h8"),
    ("npm" + "_", "A1b2C3d4E5f6G7h8I9j0A1b2C3d4E5f6G7h8"),
    ("hf" + "_", "A1b2C3d4E5f6G7h8I9j0A1b2"),
    ("pypi" + "-", "A1b2C3d4E5f6G7h8I9j0"),
    ("eyJ", "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.A1b2C3d4E5f6"),
    ("SG.", "A1b2C3d4E5f6G7h8I9j0.A1b2C3d4E5f6G7h8I9j0"),
    ("hvs" + ".", "A1b2C3d4E5f6G7h8I9j0"),
    ("https://hooks.slack.com/services/", "T0A1B2C3/B0A1B2C3/A1b2C3d4E5f6"),
    ("-----BEGIN RSA PRIVATE " + "KEY-----\n", "A1b2C3d4\nE5f6G7h8\n-----END RSA PRIVATE KEY-----"),
    ("-----BEGIN OPENSSH PRIVATE " + "KEY-----\n", "A1b2C3d4\nE5f6G7h8"),  # its end was cut off
]
AROUND = [
    "{}",
    "echo {} | x",
    'curl -d "{{\\"k\\": \\"{}\\"}}" https://a.b',
    "k={};ls",
    "git clone https://{}@a.b/c",
    "'{}'",
]


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize(("begin", "rest"), TOKENS, ids=[begin for begin, _ in TOKENS])
def test_keys_and_tokens_of_the_usual_forms_are_cut(begin: str, rest: str, around: str) -> None:
    for given in (
        {"command": around.format(begin + rest)},
        {"a": [{"b": around.format(begin + rest)}]},
    ):
        found = line("Bash", given)
        assert CUT in found
        assert not any(
            part in found for part in rest.replace("\n", ".").split(".") if len(part) > 7
        )
    assert rest not in line("Read", {"file_path": f"/work/{begin}{rest}"})


@pytest.mark.parametrize(
    "command",
    [
        f"export API_KEY={SECRET}",
        f"export MY_API_KEY='{SECRET} and {SECRET}'",
        f'export DB_PASSWORD="{SECRET} and \\"{SECRET}\\""',
        f"PGPASSWORD={SECRET} psql",
        f"x --password {SECRET}",
        f"x --password={SECRET}",
        f"x --api-key '{SECRET}' y",
        f"x --db-token {SECRET}",
        f"curl -H 'Authorization: Bearer {SECRET}' https://a.b",
        f'curl -H "authorization: Digest username=u, response={SECRET}, x={SECRET}"',
        f'curl -H "X-Api-Key: {SECRET}"',
        f"curl -H 'Cookie: a=1; b={SECRET}'",
        f"echo Bearer {SECRET}",
        f"curl -u me:{SECRET} https://a.b",
        f"curl --user 'me:{SECRET}' https://a.b",
        f"curl https://me:{SECRET}@a.b/c",
        f"git clone https://{SECRET}@a.b/c",
        f"psql postgres://u:p@{SECRET}@host/db",
        f"curl 'https://a.b/c?x=1&access_token={SECRET}&y=2'",
        f"""curl -d '{{"password": "{SECRET}"}}' https://a.b""",
        f"""curl -d "{{\\"client_secret\\": \\"{SECRET} x {SECRET}\\"}}" """,
        f"sshpass -p {SECRET} ssh a.b",
        f"sshpass -p{SECRET} ssh a.b",
        f"mysql -u root -p{SECRET} db",
        f"redis-cli -h a.b -a {SECRET} ping",
        f"npm config set //a.b/:_authToken={SECRET}",
        f"echo 'password: {SECRET}' > f",
        f"password=$(echo {SECRET})",
        f"x passphrase => '{SECRET}'",
    ],
)
def test_what_is_called_a_secret_is_cut(command: str) -> None:
    found = target("Bash", {"command": command})
    assert found is not None and SECRET not in found and CUT in found


@pytest.mark.parametrize(
    "given",
    [
        {"password": SECRET},
        {"apiKey": SECRET},
        {"X-Api-Key": SECRET},
        {"env": {"DB_PASSWORD": SECRET}},
        {"headers": [{"Authorization": SECRET}]},
        {"args": ["--password", SECRET]},
        {"args": [f"--token={SECRET}"]},
        {"token": [SECRET, {"a": SECRET}]},
        {f"password={SECRET}": 1},
    ],
)
def test_a_field_that_is_called_a_secret_is_cut(given: Any) -> None:
    found = target("mcp__x__y", given)
    assert found is not None and SECRET not in found and CUT in found


@pytest.mark.parametrize("length", range(MAX_VALUE - 60, MAX_VALUE + 10, 5))
def test_a_secret_is_cut_where_the_value_is_cut_in_its_midst(length: int) -> None:
    begin, rest = TOKENS[0]
    found = line("Bash", {"command": "a" * length + " " + begin + rest})
    assert begin not in found and rest[:6] not in found


@pytest.mark.parametrize(
    "text",
    [
        "/work/project/src/keyboard/tokenizer.py",
        "git show 0f3c1e5b7a9d2c4e6f8a0b1c2d3e4f5a6b7c8d9e",
        "0b0c6c8e-3f43-4f5e-9f0d-4b7b8f5d0d3a",
        "toolu_01A09q90qw90lq917835lq9",
        "python -m tokenizer --model bert --lr=0.1",
        "the password is asked for",
        "author: me",
        "risk-assessment-of-the-whole-project",
        "https://a.b:8080/c?page=2#d",
        "mail me@a.b",
        "ls -p x; mysql -p",
        "secrets/readme.md",
        "skills/sk-learn",
    ],
)
def test_what_is_no_secret_is_left(text: str) -> None:
    assert without_secrets(text) == text


HOSTILE = [
    "password=$(",
    "<<a ",
    "<<a\n",
    "-----BEGIN A-----",
    "://a",
    "://@",
    "mysql ",
    "redis-cli -",
    "eyJaaaaaaaa.",
    "_key",
    "token ",
    'pass=\\"',
    "authorization:",
    "-u ",
    "-" * 50,
    "\\" * 50,
    "1234567890:",
    "sk-",
    "--token ",
    "x-a-",
    "aaaaaaaaaa",
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_no_input_takes_long(piece: str) -> None:
    text = piece * (4_000_000 // len(piece))
    given = {**{f"f{number}": text for number in range(20)}, "command": text}
    begin = time.process_time()
    entry_of(judged("Bash", given))
    entry_of(judged("Read", {"file_path": text}))
    assert time.process_time() - begin < 1  # seen: 0.03


def test_a_wide_and_a_deep_input_do_not_take_long() -> None:
    wide: Any = [[["token " * 500] * 50] * 50] * 50
    deep: Any = {}
    for _ in range(100_000):
        deep = {"a": deep}
    ring: dict[str, Any] = {}
    ring["content"] = ring["a"] = ring
    for given in ({"a": wide}, {"content": wide}, deep, ring, {"a": {i: i for i in range(10**5)}}):
        begin = time.process_time()
        assert len(line("mcp__x__y", given).encode()) <= MAX_LINE
        assert time.process_time() - begin < 1
    while deep:  # or its end would be as deep
        deep = deep.pop("a", None)


@pytest.mark.parametrize("char", ["\U000e0041", "\\", '"', "\n", "\ud800", "\U0001f600", "\0"])
def test_a_line_is_bounded_whatever_has_to_be_escaped(char: str) -> None:
    long = char * 100_000
    names = ("session_id", "agent", "agent_id", "tool_use_id", "code", "lock", "rule", "answer")
    given = {name: long for name in ("file_path", "path", "command", "a", "b", "c", long)}
    for mark, count, name in itertools.product("_-", range(32), ("content", "text", "body")):
        given[mark * count + name] = long  # as many names of content as there are spellings
    for tool in ("Write", "Bash", long):
        call = judged(tool, given, **dict.fromkeys(names, long))
        assert len(line_of(0.0, entry_of(call))) <= MAX_LINE


class Hostile(Mapping[str, Any]):
    def __getitem__(self, key: str) -> Any:
        raise RuntimeError(SECRET)

    def __iter__(self) -> Iterator[str]:
        raise RuntimeError(SECRET)

    def __len__(self) -> int:
        raise RuntimeError(SECRET)


class Named:
    def __repr__(self) -> str:
        raise RuntimeError(SECRET)


@pytest.mark.parametrize("given", [Hostile(), 7, None, ["a"], {"a": Hostile()}, "text"])
def test_an_input_that_cannot_be_read_is_said_to_be_so(given: Any) -> None:
    call = Judged(session_id="s", tool="Bash", tool_input=given, verdict="allow", lock="gate")
    found = json.loads(line_of(0.0, entry_of(call)))
    assert found["target"] == "<unreadable>" and SECRET not in str(found)


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.builds(lambda: 10**5000),
    st.integers(-(2**300), 2**300),
    st.floats(),
    st.text(st.characters()),
    st.text(st.sampled_from('\0\ud800\udc00\u2028\u202e"\\\n\r\x1b aA=:-<é\U0001f600')),
    st.binary(),
    st.builds(object),
    st.builds(Named),
    st.builds(Hostile),
    st.sampled_from([Named, {1, 2}, 1j, ...]),
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=5),
        st.tuples(inner, inner),
        st.dictionaries(
            st.one_of(
                st.text(), st.integers(), st.none(), st.sampled_from(["content", "command", "path"])
            ),
            inner,
            max_size=5,
        ),
    ),
    max_leaves=30,
)


@whatever(
    tool=st.one_of(st.sampled_from(["Write", "Grep", "Glob", "Bash"]), ANYTHING),
    fields=st.lists(ANYTHING, min_size=11, max_size=11),
)
def test_each_line_is_one_valid_line_of_json_whatever_the_call(
    tool: Any, fields: list[Any]
) -> None:
    names = "tool_input session_id agent agent_id tool_use_id verdict code rule milliseconds asked answer"
    call = Judged(tool=tool, lock="gate", **dict(zip(names.split(), fields, strict=True)))
    found = line_of(0.0, entry_of(call))
    assert found.endswith(b"\n") and found.count(b"\n") == 1 and len(found) <= MAX_LINE
    assert found.decode().rstrip("\n").isprintable()  # nothing that a terminal would obey
    told = json.loads(found, parse_constant=pytest.fail)
    assert isinstance(told, dict) and len(told) == 15


def test_a_number_of_milliseconds_that_is_none_is_left_out() -> None:
    odd = (float("nan"), float("inf"), 10**5000, "3", None, True)
    assert [entry_of(judged(milliseconds=one))["ms"] for one in odd] == [None] * 6
    assert entry_of(judged(milliseconds=3))["ms"] == 3

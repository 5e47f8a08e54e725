"""The endpoint, the key and the way there, as an environment has them; and what stands inside."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_kit.confine.upstream import (
    INSIDE_HOST,
    REPLACED_ENV,
    broker_reason,
    inside_env,
    made_up_key,
    upstream_from,
)
from agent_kit.scope import ConfigError
from agent_kit.session.pins import SECRET_ENV

SECRET = "sk-ant-the-real-one"


def headers(**env: str) -> dict[str, str]:
    return dict(upstream_from(env).headers)


def test_a_key_and_a_token_go_where_the_cli_sends_them() -> None:
    assert headers(ANTHROPIC_API_KEY=f" {SECRET}\n") == {"x-api-key": SECRET}
    assert headers(ANTHROPIC_AUTH_TOKEN="t") == {"authorization": "Bearer t"}
    assert set(headers(ANTHROPIC_API_KEY="k", ANTHROPIC_AUTH_TOKEN="t")) == {
        "x-api-key",
        "authorization",
    }


def test_custom_headers_replace_the_key_and_the_last_of_two_counts() -> None:
    custom = "X-Api-Key: mine\r\nX-A: one\nx-a:  two \nnot a header\n: empty\nX-Empty:"
    assert headers(ANTHROPIC_API_KEY=SECRET, ANTHROPIC_CUSTOM_HEADERS=custom) == {
        "x-api-key": "mine",
        "x-a": "two",
        "x-empty": "",
    }


@pytest.mark.parametrize("name", ["Content-Length", "Transfer-Encoding", "connection", "Upgrade"])
def test_a_custom_header_can_not_frame_a_message(name: str) -> None:
    assert headers(ANTHROPIC_CUSTOM_HEADERS=f"{name}: 5") == {}


def test_all_mistakes_are_told_at_once_and_none_tells_the_secret() -> None:
    env = {
        "ANTHROPIC_API_KEY": f"{SECRET}\x00",
        "ANTHROPIC_AUTH_TOKEN": f"{SECRET}\nX-Evil: 1",
        "ANTHROPIC_CUSTOM_HEADERS": f"X A: {SECRET}\nX-B: {SECRET}\x7f",
        "ANTHROPIC_BASE_URL": f"https://me:{SECRET}@gateway",
        "HTTPS_PROXY": f"socks5://me:{SECRET}@proxy",
    }
    with pytest.raises(ConfigError) as caught:
        upstream_from(env)
    assert sorted(fault.field for fault in caught.value.faults) == sorted(
        [*env, "ANTHROPIC_CUSTOM_HEADERS"]
    )
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "gateway.example",  # no scheme
        "ftp://gateway",
        "https://",
        "https://gateway/?key=1",
        "https://gateway/#part",
        "https://gateway:port",
        "https://gate way",
        "https://gateway\r\nX: y",
    ],
)
def test_a_base_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="ANTHROPIC_BASE_URL"):
        upstream_from({"ANTHROPIC_BASE_URL": url})


def test_the_endpoint_is_the_first_partys_unless_one_is_named() -> None:
    assert upstream_from({}).base_url == "https://api.anthropic.com"
    named = upstream_from({"ANTHROPIC_BASE_URL": "http://gateway:81/a/b/"})
    assert named.base_url == "http://gateway:81/a/b"


PROXY = "http://proxy:3128"


@pytest.mark.parametrize(
    ("env", "proxy"),
    [
        ({}, None),
        ({"HTTPS_PROXY": PROXY}, PROXY),
        ({"HTTP_PROXY": PROXY}, PROXY),  # for https, too: so the CLI has it
        ({"HTTPS_PROXY": "http://second:1", "https_proxy": PROXY}, PROXY),
        ({"HTTP_PROXY": "http://second:1", "HTTPS_PROXY": PROXY}, PROXY),
        ({"HTTPS_PROXY": PROXY, "NO_PROXY": "*"}, None),
        ({"HTTPS_PROXY": PROXY, "NO_PROXY": "a, GATEWAY.example"}, None),
        ({"HTTPS_PROXY": PROXY, "no_proxy": "gateway.example:443"}, None),
        ({"HTTPS_PROXY": PROXY, "NO_PROXY": ".example"}, None),
        ({"HTTPS_PROXY": PROXY, "NO_PROXY": "x", "no_proxy": ".gateway.example"}, None),
        ({"HTTPS_PROXY": PROXY, "NO_PROXY": "gateway.example:80"}, PROXY),
        ({"HTTPS_PROXY": PROXY, "NO_PROXY": "example"}, PROXY),  # that host alone
        ({"HTTPS_PROXY": PROXY, "NO_PROXY": "way.example"}, PROXY),
        ({"HTTPS_PROXY": PROXY, "ANTHROPIC_UNIX_SOCKET": "/s"}, None),
    ],
)
def test_the_proxy_is_the_one_that_the_cli_would_use(
    env: dict[str, str], proxy: str | None
) -> None:
    found = upstream_from({"ANTHROPIC_BASE_URL": "https://gateway.example", **env})
    assert found.proxy == proxy
    assert found.unix_socket == env.get("ANTHROPIC_UNIX_SOCKET")


def test_certificate_files_are_taken_when_they_are_there(tmp_path: Path) -> None:
    there = tmp_path / "ca.pem"
    there.touch()
    found = upstream_from({"SSL_CERT_FILE": str(there), "NODE_EXTRA_CA_CERTS": "/not/there"})
    assert (found.ca_file, found.extra_ca_file) == (str(there), None)


def test_a_value_that_is_shown_shows_no_secret() -> None:
    env = {
        "ANTHROPIC_API_KEY": SECRET,
        "HTTPS_PROXY": f"http://me:{SECRET}@proxy",
        "CLAUDE_CODE_CLIENT_KEY_PASSPHRASE": SECRET,
    }
    found = upstream_from(env)
    assert SECRET in str(found.headers)
    assert SECRET not in repr(found)


# --- inside ---------------------------------------------------------------------------------------

HOST = {
    **dict.fromkeys(SECRET_ENV, SECRET),
    "ANTHROPIC_BASE_URL": f"https://{SECRET}.example",
    "CLAUDE_CODE_CLIENT_KEY_PASSPHRASE": SECRET,
}


def test_inside_nothing_is_left_of_the_key_and_the_endpoint() -> None:
    for where in ({"socket": "/run/model.sock"}, {"port": 4000}):
        found = inside_env(HOST, key="made-up", **where)  # type: ignore[arg-type]
        assert set(HOST) <= set(REPLACED_ENV) <= set(found)
        assert SECRET not in str(found)
        assert [name for name, value in found.items() if value == "made-up"] == [
            "ANTHROPIC_API_KEY"
        ]


def test_inside_the_model_is_at_the_socket_or_at_the_port() -> None:
    env = {"ANTHROPIC_API_KEY": SECRET, "NO_PROXY": "a", "HTTPS_PROXY": PROXY}
    at_socket = inside_env(env, key="k", socket="/s")
    assert at_socket["ANTHROPIC_UNIX_SOCKET"] == "/s"
    assert at_socket["ANTHROPIC_BASE_URL"] == f"http://{INSIDE_HOST}"
    at_port = inside_env(env, key="k", port=4000)
    assert at_port["ANTHROPIC_UNIX_SOCKET"] == ""
    assert at_port["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:4000"
    assert at_port["NO_PROXY"] == at_port["no_proxy"] == "a,127.0.0.1"
    for wrong in ({}, {"socket": "/s", "port": 1}):
        with pytest.raises(ValueError, match="socket or at a port"):
            inside_env(env, key="k", **wrong)  # type: ignore[arg-type]


def test_inside_a_token_is_replaced_by_a_token() -> None:
    found = inside_env({"ANTHROPIC_AUTH_TOKEN": SECRET}, key="k", socket="/s")
    assert (found["ANTHROPIC_AUTH_TOKEN"], found["ANTHROPIC_API_KEY"]) == ("k", "")


def test_no_two_made_up_keys_are_the_same() -> None:
    assert made_up_key() != made_up_key()


# --- what can't be brokered -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("env", "word"),
    [
        ({"CLAUDE_CODE_USE_BEDROCK": "1"}, "CLAUDE_CODE_USE_BEDROCK"),
        ({"CLAUDE_CODE_USE_VERTEX": "true"}, "CLAUDE_CODE_USE_VERTEX"),
        ({"CLAUDE_CODE_USE_FOUNDRY": "whatever"}, "CLAUDE_CODE_USE_FOUNDRY"),
        ({"CLAUDE_CODE_OAUTH_TOKEN": SECRET}, "CLAUDE_CODE_OAUTH_TOKEN"),
    ],
)
def test_another_provider_and_an_accounts_token_win_over_a_key(
    env: dict[str, str], word: str
) -> None:
    reason = broker_reason({"ANTHROPIC_API_KEY": "k", **env}, None)
    assert reason is not None
    assert word in reason
    assert SECRET not in reason


@pytest.mark.parametrize("off", ["", "0", "false", "No", "off"])
def test_a_provider_that_is_switched_off_is_none(off: str) -> None:
    env = {"CLAUDE_CODE_USE_BEDROCK": off, "CLAUDE_CODE_OAUTH_TOKEN": ""}
    assert broker_reason({"ANTHROPIC_API_KEY": "k", **env}, None) is None
    assert broker_reason({"ANTHROPIC_AUTH_TOKEN": "t", **env}, None) is None


def test_without_a_key_the_reason_says_what_signs_in_instead(tmp_path: Path) -> None:
    def reason() -> str:
        return str(broker_reason({"ANTHROPIC_API_KEY": " "}, tmp_path))

    assert reason() == "there is no key: set ANTHROPIC_API_KEY."
    (tmp_path / ".credentials.json").write_text("{}")
    assert "account" in reason()
    (tmp_path / "settings.json").write_text(json.dumps({"apiKeyHelper": "echo k"}))
    assert "apiKeyHelper" in reason()


def test_a_signed_in_account_does_not_matter_beside_a_key(tmp_path: Path) -> None:
    (tmp_path / ".credentials.json").write_text("{}")
    assert broker_reason({"ANTHROPIC_API_KEY": "k"}, tmp_path) is None

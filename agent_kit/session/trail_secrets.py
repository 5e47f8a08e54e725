"""Secrets are cut out of what is written down: keys and tokens of the usual forms, and what is called one.

This is a net with holes: a secret of no known form that nothing calls by its name passes. Too much may
be cut, and that does no harm. Each expression is linear in the text: nothing has to follow an
unbounded run, or the run gives nothing back.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["CUT", "is_secret_name", "without_secrets"]

CUT: Final = "[secret]"

_NAME: Final = (
    r"(?:pass(?:word|wd|phrase|code)s?|(?<![a-z])pass|pwd|secrets?|tokens?|credentials?|creds"
    r"|(?:api|app|access|account|auth|client|encryption|license|master|private|secret|session|shared"
    r"|signing)[_. -]?keys?|[_-]key|(?<![a-z])o?auth|authorization|cookie|session_?id|sig|signature)"
    r"(?:[_.-][\w.-]{0,32}|(?-i:(?<=[a-z])[A-Z])\w{0,32}|\d{1,4})?"  # tokenizer is no token
)
_QUOTE: Final = r"""\\{0,8}["']"""  # as it stands in a command, or in JSON in a command
_VALUE: Final = (
    r"""(?:\\{1,8}(?P<quote>["'])(?:(?!\\{1,8}(?P=quote)).)*+|"(?:[^"\\]|\\.)*+|'[^']*+"""
    r"""|(?:\$\([^)]{0,200}+\)|[^\s&;|<>])++)"""
)
_HEADER: Final = r"""(?:proxy-)?authorization|cookie|set-cookie|x-[a-z-]{0,32}(?:key|token|auth)"""

_TOKENS: Final = (
    r"(?<![A-Za-z0-9])(?:"
    r"sk-[\w-]{12,}"  # Anthropic, OpenAI, and those that followed them
    r"|(?:gsk|xai|pplx|r8|hf)[-_]\w{16,}"  # other providers of models
    r"|gh[pousr]_\w{16,}|github_pat_\w{16,}"
    r"|gl(?:pat|ptt|dt|rt|cbt|oas|agent|soat|ft|imt)-[\w.-]{16,}"
    r"|xox[a-z](?:\.xox[a-z])?-[\w-]{8,}|x(?:app|wfp)-[\w-]{8,}"  # Slack
    r"|(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}"  # AWS
    r"|AIza[\w-]{30,}|ya29\.[\w.-]{16,}|GOCSPX-[\w-]{16,}|1//0[\w-]{20,}"  # Google
    r"|[spr]k_(?:live|test|org)_\w{10,}|whsec_[\w+/=]{10,}"  # Stripe
    r"|npm_\w{20,}|pypi-[\w-]{16,}|dckr_pat_[\w-]{16,}|oy2[a-z2-7]{43}"  # registries
    r"|d(?:op|oo|or)_v1_\w{16,}|dapi[0-9a-f]{32}|hv[sbr]\.[\w-]{16,}|tskey-[\w-]{12,}"
    r"|SG\.[\w-]{16,}\.[\w-]{16,}|key-[0-9a-f]{32}|shp(?:at|ss|ca|pa)_[0-9a-fA-F]{16,}"
    r"|gls?a_\w{16,}|sntry[su]_[\w+/=-]{16,}|ATATT3x[\w=-]{16,}|PMAK-[\w-]{16,}|lin_api_\w{16,}"
    r"|sq0[a-z]{3}-[\w-]{16,}|ntn_\w{16,}|secret_\w{32,}|AGE-SECRET-KEY-1[A-Z0-9]{16,}"
    r"|eyJ[\w-]{8,}(?:\.[\w-]*){1,4}"  # RFC 7519
    r"|\d{8,10}:AA[\w-]{30,}|[MNO][\w-]{23,25}\.[\w-]{6}\.[\w-]{27,}"  # Telegram, Discord
    r")"
)

_PROGRAMS: Final = (
    r"(?P<keep>\b(?:sshpass\s{1,8}-p\s{0,8}|redis-cli\b[^\n|;&]{0,200}?\s-a\s{1,8}"
    rf"|(?:mysql|mysqldump|mysqladmin|mariadb)\b[^\n|;&]{{0,200}}?\s-p(?=\S))){_VALUE}"
)

_ANY_CASE: Final = re.IGNORECASE | re.DOTALL

# What must be there for a form, one of it (it spares the search of most texts); the form; its flags.
# What stays of a match is its group "keep".
_FORMS: Final = tuple(
    (needed, re.compile(form, flags))
    for needed, form, flags in (
        (  # RFC 7468, OpenSSH, OpenPGP; one whose end was cut off goes up to the end
            ("BEGIN",),
            r"-{4,5} ?BEGIN [^-\n]{1,64}-{4,5}(?:(?!-{4,5} ?END).)*+(?:-{4,5} ?END [^-\n]{1,64}-{4,5})?",
            re.DOTALL,
        ),
        (("",), _TOKENS, re.ASCII),
        (("slack",), r"(?P<keep>hooks\.slack\.com/\w{4,12}/)[\w/+-]{8,}", re.ASCII),
        (("://",), r"""(?P<keep>://)[^\s/?#"'<>]{1,512}(?=@)""", 0),  # RFC 3986, 3.2.1
        (
            ("",),
            rf"(?P<keep>\b(?:bearer|basic)\s{{1,8}}(?:{_QUOTE})?)[\w.~+/=-]{{8,}}",
            re.IGNORECASE,
        ),
        (
            ("=", ":"),
            rf"(?P<keep>{_NAME}(?:{_QUOTE})?\]?\s{{0,8}}(?:=>|:=|=|:)\s{{0,8}}){_VALUE}",
            _ANY_CASE,
        ),
        (  # --token VALUE, and "--token", "VALUE"
            ("-",),
            rf"(?P<keep>(?<=-)(?:{_NAME}|key)(?:(?:{_QUOTE})?,)?\s{{1,8}})(?!-){_VALUE}",
            _ANY_CASE,
        ),
        (  # curl -u name:VALUE
            (":",),
            rf"""(?P<keep>(?<![\w-])(?:-u|-U|--user|--proxy-user)[ =]{{0,4}}(?:{_QUOTE})?[^\s:"']{{0,128}}:){_VALUE}""",
            re.DOTALL,
        ),
        (  # the whole of a header, of which the form of names took the first word
            ("=", ":"),
            rf"""(?P<keep>(?:{_HEADER})(?:{_QUOTE})?\s{{0,8}}[:=]\s{{0,8}}(?:{_QUOTE})?)[^"'\r\n]++""",
            re.IGNORECASE,
        ),
        ((" -p", " -a"), _PROGRAMS, re.DOTALL),
    )
)

_IS_NAME: Final = re.compile(rf"(?:{_NAME}|{_HEADER})$", re.IGNORECASE)


def without_secrets(text: str) -> str:
    """``text`` with :data:`CUT` where a secret was.

    >>> without_secrets("curl -H 'Authorization: Bearer abc' https://me:pw@host/?token=1&a=2")
    "curl -H 'Authorization: [secret]' https://[secret]@host/?token=[secret]&a=2"
    """
    for needed, form in _FORMS:
        if any(one in text for one in needed):
            text = form.sub(_cut, text)
    return text


def is_secret_name(name: str) -> bool:
    """Whether what is called so is taken for a secret.

    >>> [is_secret_name(name) for name in ("db_password", "apiKey", "path", "tokenizer")]
    [True, True, False, False]
    """
    return _IS_NAME.search(name[-128:]) is not None


def _cut(match: re.Match[str]) -> str:
    return (match.groupdict().get("keep") or "") + CUT

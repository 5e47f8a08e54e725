"""Every sentence that a download refuses with. None holds an address that a look-up gave.

What the server wrote is in none of them; a host is shown as the URL has it, in ASCII.
"""

from __future__ import annotations

from http import HTTPStatus

from agent_kit.store import StoreCode, StoreError, shown

__all__ = [
    "bad_url",
    "broken",
    "downgraded",
    "idle",
    "no_certificates",
    "not_allowed",
    "not_public",
    "packed",
    "port",
    "proxied",
    "status",
    "too_large",
    "too_long",
    "too_many_turns",
    "unnamed",
    "unreachable",
    "untrusted",
]

_LONGEST_HOST = 253  # characters


def bad_url(why: str) -> StoreError:
    """A URL that is none, or none that is fetched."""
    return StoreError(
        f"The URL can't be used, because {why}: give an http:// or https:// URL without that.",
        code=StoreCode.BAD_TEXT,
    )


def unnamed() -> StoreError:
    """A URL whose path ends without a name."""
    return StoreError(
        "The URL doesn't end with a file's name: call again with the name that the file shall have.",
        code=StoreCode.BAD_NAME,
    )


def not_allowed(host: str) -> StoreError:
    """A host that the operator's list doesn't have."""
    return _denied(
        f"{_host(host)} isn't one of the hosts that this session may download from: use another "
        "source, or ask the person for the file."
    )


def port(number: int, allowed: tuple[int, ...]) -> StoreError:
    """A port that isn't allowed."""
    known = ", ".join(map(str, allowed))
    return _denied(f"Port {number} isn't one that is downloaded from ({known}): use another URL.")


def not_public(host: str) -> StoreError:
    """A name that isn't known, or leads to an address that is refused: the same for both.

    Two sentences would tell which names a private network has.
    """
    return _denied(
        f"{_host(host)} doesn't lead to public addresses alone, and only public hosts are "
        "downloaded from: check the spelling, use another source, or ask the person for the file."
    )


def downgraded() -> StoreError:
    """A redirect from https to http."""
    return _denied(
        "The server wanted to go on without encryption (http), so nothing was saved: look for an "
        "https:// URL of the file itself."
    )


def proxied(variable: str) -> StoreError:
    """A proxy in the environment. ``variable`` is its name, never its value."""
    return _denied(
        f"A proxy is set on this machine ({variable}), and what a proxy connects to can't be "
        "checked, so nothing is downloaded: ask the person for the file."
    )


def too_many_turns(most: int) -> StoreError:
    """Redirects without an end."""
    return _failed(f"The server sent the download on more than {most} times: use another URL.")


def unreachable(host: str) -> StoreError:
    """No connection."""
    return _failed(f"{_host(host)} can't be reached: try once more later, or use another source.")


def untrusted(host: str) -> StoreError:
    """A certificate that isn't trusted, or no encryption that both sides know."""
    return _failed(
        f"No trusted encrypted connection to {_host(host)} can be made, so nothing was saved: use "
        "another source, or tell the person."
    )


def no_certificates() -> StoreError:
    """A certificate file that the environment names, and that can't be used."""
    return _failed(
        "The certificates that this machine trusts can't be read, so nothing was downloaded: tell "
        "the person who runs this session."
    )


def broken(host: str) -> StoreError:
    """An answer that broke off or can't be understood."""
    return _failed(
        f"The answer of {_host(host)} broke off or can't be understood, so nothing was saved: try "
        "once more, or use another source."
    )


def packed() -> StoreError:
    """A body that is compressed although it was asked for as it is."""
    return _failed(
        "The server sends the file only packed (Content-Encoding), which is never unpacked here, so "
        "nothing was saved: use another source."
    )


def too_large(most: int) -> StoreError:
    """More bytes than are kept, announced or sent. ``most`` is in bytes."""
    return StoreError(
        f"The file has more than {most} bytes, so nothing was saved: look for a smaller part of it.",
        code=StoreCode.TOO_LARGE,
    )


def too_long(seconds: float) -> StoreError:
    """The whole time is over."""
    return _failed(
        f"The download took more than {seconds:g} seconds, so nothing was saved: try once more "
        "later, or use another source."
    )


def idle(seconds: float) -> StoreError:
    """Nothing came for a while."""
    return _failed(
        f"Nothing came from the server for {seconds:g} seconds, so nothing was saved: try once more "
        "later, or use another source."
    )


# What to do about a status; others by their hundreds.
_NEXT = {
    HTTPStatus.UNAUTHORIZED: "it wants a sign-in, which this tool never gives: ask the person",
    HTTPStatus.FORBIDDEN: "it doesn't give this to strangers: ask the person",
    HTTPStatus.NOT_FOUND: "there is nothing at this URL: check it",
    HTTPStatus.GONE: "it was taken away: use another source",
    HTTPStatus.TOO_MANY_REQUESTS: "it was asked too often: try once more later",
}


def status(code: int) -> StoreError:
    """An answer that isn't the file."""
    later = "try once more later" if code >= 500 else "use another URL"
    why = _NEXT.get(HTTPStatus(code)) if code in set(HTTPStatus) else None
    kind = StoreCode.NOT_FOUND if code in (404, 410) else StoreCode.UNREADABLE
    sentence = f"The server answered with status {code}, so nothing was saved: {why or later}."
    return StoreError(sentence, code=kind)


def _host(host: str) -> str:
    return f'"{shown(host, _LONGEST_HOST)}"'


def _denied(sentence: str) -> StoreError:
    return StoreError(sentence, code=StoreCode.DENIED)


def _failed(sentence: str) -> StoreError:
    return StoreError(sentence, code=StoreCode.UNREADABLE)

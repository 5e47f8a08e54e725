"""Connections to a PostgreSQL server: few, kept between calls, made anew when the server was away.

psycopg (LGPL-3.0) is an optional dependency, used as it is published. Whatever the server or the
driver says stays here: a caller gets one sentence without the host, the password or the server's text.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from agent_kit.store.errors import StoreCode, StoreError

if TYPE_CHECKING:
    import psycopg

    Session = psycopg.Connection[tuple[Any, ...]]

__all__ = ["Link", "Waits", "link_to", "require_driver"]

_log = logging.getLogger("agent_kit.store")

MAX_CONNECTIONS: Final = 8
"""Most connections that one process has to one database at the same time."""

_TELL: Final = "Tell the person who runs this session."
_AWAY: Final = (
    "The pages' database can't be reached: nothing was changed. Try again in a moment; if it stays "
    "away, tell the person who runs this session."
)
_UNSURE: Final = (
    "The database went away while the change was being written: read the page to see whether it is "
    "there before you try again."
)
_REFUSALS: Final = {
    "55P03": (StoreCode.BUSY, "Somebody else is writing here: nothing was changed. Try again."),
    "40P01": (StoreCode.BUSY, "Somebody else is writing here: nothing was changed. Try again."),
    "40001": (StoreCode.BUSY, "Somebody else is writing here: nothing was changed. Try again."),
    "57014": (StoreCode.BUSY, "The database took too long: nothing was changed. Try again."),
    "53100": (StoreCode.DISK, f"The database's disk is full: nothing was changed. {_TELL}"),
    "25006": (StoreCode.READ_ONLY, "The database is read-only: nothing was changed."),
    "42501": (
        StoreCode.UNAVAILABLE,
        f"The rights in the database don't allow this: nothing was changed. {_TELL}",
    ),
}
# A server that is gone without a word is noticed after about half a minute.
_DEFAULTS: Final = {
    "application_name": "agent-kit",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """How long a call waits, in seconds: for a connection, for somebody else's lock, for an answer."""

    connect: float = 5.0
    lock: float = 30.0
    statement: float = 60.0


def require_driver() -> None:
    """Raises ``ImportError``, which names the extra, where psycopg is missing."""
    try:
        import psycopg  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "PostgresStore needs psycopg: install it with pip install 'agent-kit[postgres]'."
        ) from error


class Link:
    """The connections of this process to one database, for every store and thread of it."""

    def __init__(self, dsn: str, schema: str, waits: Waits) -> None:
        self._dsn = dsn
        self._schema = schema
        self._waits = waits
        self._forget()

    def _forget(self) -> None:
        """Start without connections. A child process must not touch its parent's."""
        self._idle: list[Session] = []
        self._lock = threading.Lock()
        self._slots = threading.BoundedSemaphore(MAX_CONNECTIONS)

    @contextlib.contextmanager
    def transaction(self, *, writes: bool) -> Iterator[Session]:
        """One transaction, which ends with the block: kept when it ends well, undone otherwise.

        One that doesn't write sees the database as it was at its beginning. What the driver raises
        comes out as :class:`StoreError`.
        """
        import psycopg

        with self._slot():
            session = self._begun(writes=writes)
            try:
                yield session
                self._commit(session, writes=writes)
            except psycopg.Error as error:
                raise _refusal(error, session) from None
            finally:
                self._give_back(session)

    def close(self) -> None:
        """Close the connections that nobody uses; the next call makes a new one."""
        with self._lock:
            idle, self._idle = self._idle, []
        for session in idle:
            session.close()

    @contextlib.contextmanager
    def _slot(self) -> Iterator[None]:
        slots = self._slots
        if not slots.acquire(timeout=self._waits.lock):
            raise StoreError(_REFUSALS["57014"][1], code=StoreCode.BUSY)
        try:
            yield
        finally:
            slots.release()

    def _begun(self, *, writes: bool) -> Session:
        """A connection in a new transaction; one that was kept while the server went away is dropped."""
        import psycopg

        while (kept := self._kept()) is not None:
            try:
                return self._begin(kept, writes=writes)
            except psycopg.Error:
                kept.close()
        fresh = self._connected()
        try:
            return self._begin(fresh, writes=writes)
        except psycopg.Error as error:
            fresh.close()
            raise _refusal(error, fresh) from None
        except BaseException:
            fresh.close()
            raise

    def _kept(self) -> Session | None:
        with self._lock:
            return self._idle.pop() if self._idle else None

    def _begin(self, session: Session, *, writes: bool) -> Session:
        level = "READ COMMITTED" if writes else "REPEATABLE READ READ ONLY"
        # All in one message, and for this transaction only: it works behind a pooler as well.
        session.execute(
            f"BEGIN ISOLATION LEVEL {level};"
            f"SET LOCAL search_path = {self._schema}, pg_temp;"
            f"SET LOCAL lock_timeout = {_milliseconds(self._waits.lock)};"
            f"SET LOCAL statement_timeout = {_milliseconds(self._waits.statement)};"
            f"SET LOCAL idle_in_transaction_session_timeout = {_milliseconds(self._waits.statement)}"
        )
        return session

    def _commit(self, session: Session, *, writes: bool) -> None:
        import psycopg

        try:
            session.execute("COMMIT")
        except psycopg.Error as error:
            if writes and session.broken:
                _log_failed(error)
                raise StoreError(_UNSURE, code=StoreCode.UNAVAILABLE) from None
            raise

    def _connected(self) -> Session:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict, make_conninfo

        try:
            given = conninfo_to_dict(self._dsn)
        except psycopg.Error:  # its text repeats the DSN
            _log.warning("the DSN of the pages' database can't be read")
            raise StoreError(_AWAY, code=StoreCode.UNAVAILABLE) from None
        options: dict[str, Any] = (
            _DEFAULTS
            | given
            | {
                "connect_timeout": str(max(1, round(self._waits.connect))),
                "client_encoding": "UTF8",
            }
        )
        try:
            return psycopg.connect(
                make_conninfo(**options),
                autocommit=True,
                prepare_threshold=None,  # poolers mix up prepared statements
            )
        except (psycopg.Error, OSError, ValueError) as error:
            _log.warning("the pages' database can't be reached: %s", _without_secrets(error, given))
            raise StoreError(_AWAY, code=StoreCode.UNAVAILABLE) from None

    def _give_back(self, session: Session) -> None:
        """Keep the connection for the next call, if nothing is going on in it any more."""
        import psycopg
        from psycopg.pq import TransactionStatus

        try:
            if session.info.transaction_status in (
                TransactionStatus.INTRANS,
                TransactionStatus.INERROR,
            ):
                session.execute("ROLLBACK")
        except psycopg.Error:
            session.close()
        if session.info.transaction_status is not TransactionStatus.IDLE:
            session.close()
            return
        with self._lock:
            self._idle.append(session)


def _milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1000))


def _refusal(error: psycopg.Error, session: Session) -> StoreError:
    """What a caller is told of what the driver raised."""
    _log_failed(error)
    known = _REFUSALS.get(error.sqlstate or "")
    if known is not None:
        return StoreError(known[1], code=known[0])
    if session.broken or session.closed:
        return StoreError(_AWAY, code=StoreCode.UNAVAILABLE)
    return StoreError(
        f"The database refused: nothing was changed. {_TELL}", code=StoreCode.UNAVAILABLE
    )


def _log_failed(error: psycopg.Error) -> None:
    """The kind of error only: its text may repeat what stands in a page."""
    _log.warning("PostgreSQL: %s %s", type(error).__name__, error.sqlstate or "without a state")


def _without_secrets(error: Exception, given: dict[str, Any]) -> str:
    text = " ".join(str(error).split())
    for secret in (given.get("password"), given.get("sslpassword"), os.environ.get("PGPASSWORD")):
        for form in filter(None, (secret, quote(str(secret), safe="") if secret else None)):
            text = text.replace(str(form), "***")
    return f"{type(error).__name__}: {text}"


_LINKS: Final[dict[tuple[str, str, Waits], Link]] = {}


def link_to(dsn: str, schema: str, waits: Waits) -> Link:
    """The process's one link with these values."""
    return _LINKS.setdefault((dsn, schema, waits), Link(dsn, schema, waits))


def _after_fork() -> None:
    for link in _LINKS.values():
        _INHERITED.append(link._idle)  # closing them here would end the parent's
        link._forget()


def _at_exit() -> None:
    for link in _LINKS.values():
        link.close()


_INHERITED: Final[list[object]] = []
atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

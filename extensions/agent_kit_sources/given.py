"""A file of a person's own, which they give: any place on the host, since they chose it themselves.

What the session closes stays closed, and no link is followed: not the file's own, and none on the
way that lies where the agent, or whoever made the project, could have put it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agent_kit.scope import FileScope, check_file_scope
from agent_kit.store import StoreCode, StoreError
from agent_kit_sources.origin import check_plain, check_still, read_plain

__all__ = ["GivenReader"]

# No sentence names the file: where a person keeps theirs is not the model's business.
_LABEL = "The file that the person gave"


_MOST_LINKS = 40  # as many as the kernel follows


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenReader:
    """Reads files from anywhere on the host.

    ``scope`` gives the session's. ``permits_in`` makes, of an absolute folder, what says whether the
    session closes a file in it. ``project_dir`` and ``run_dir`` are absolute.
    """

    scope: Callable[[], FileScope]
    permits_in: Callable[[Path], Callable[[Path], bool]]
    project_dir: Path
    run_dir: Path

    def read(self, given: str) -> bytes:
        """The bytes of the file at a path; relative to the process's folder, ``~`` is its home.

        Raises :class:`StoreError` for what isn't there or can't be read, one that the session closes,
        a link, a special file, one with a second name, one of more than ``MAX_ORIGINAL`` bytes and
        one that changes meanwhile.
        """
        try:
            path = Path(os.path.abspath(os.path.expanduser(given)))
            real = self._resolved(path.parent) / path.name
            check_plain(os.lstat(real), _LABEL)
            if not self.permits_in(real.parent)(real):
                raise _refused("this session closes it")
            data, status = read_plain(real, _LABEL)
            check_still(real, status, _LABEL)
        except (FileNotFoundError, NotADirectoryError):
            raise _refused("it isn't there") from None
        except (OSError, ValueError):
            raise _refused("it can't be read") from None
        return data

    def _resolved(self, folder: Path) -> Path:
        """A folder, links resolved one by one: one of them may lead to another that the agent has made."""
        left, here, links = [*folder.parts[:0:-1]], "/", 0
        while left:
            name = left.pop()
            path = os.path.join(here, name)
            if name == "..":
                here = os.path.dirname(here)
            elif not os.path.islink(path):
                here = path
            elif self._is_the_sessions(here):
                raise _refused("a folder on its way is a link in a folder of this session")
            elif (links := links + 1) > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            else:
                target = os.readlink(path)
                here = "/" if target.startswith("/") else here
                left += [each for each in reversed(target.split("/")) if each not in ("", ".")]
        return Path(here)

    def _is_the_sessions(self, real: str) -> bool:
        """Whether the agent writes in a resolved folder, or it is the project's or the run's."""
        own = (os.path.realpath(each) for each in (self.project_dir, self.run_dir))
        call = {"file_path": os.path.join(real, "a")}
        return (
            any(f"{real}/".startswith(f"{each}/") for each in own)
            or check_file_scope(self.scope(), "Write", call) is None
        )


def _refused(why: str) -> StoreError:
    return StoreError(
        f"{_LABEL} was not saved: {why}. Tell them.",
        code=StoreCode.UNREADABLE,
    )

"""The system-call filters: a table, and the programs made from it.

The large one stands beside Landlock, a small one beside bubblewrap (:func:`assemble_beside`).
A plan makes them, for the processor that it runs on. Numbers of system calls are those of x86_64 and
aarch64. The filter never reads memory: what depends on a path or an address is handed to the watcher
outside (``ASK``), which reads it once and acts itself.
"""

from __future__ import annotations

import errno
import struct
import sys
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

__all__ = [
    "ARCHES",
    "CALLS",
    "KEY_CALLS",
    "Call",
    "Machine",
    "asked",
    "assemble",
    "assemble_beside",
    "number",
]

ALLOW: Final = 0x7FFF0000
ASK: Final = 0x7FC00000  # SECCOMP_RET_USER_NOTIF
KILL: Final = 0x80000000  # SECCOMP_RET_KILL_PROCESS
_ERROR: Final = 0x00050000


def refuse(code: int) -> int:
    """The answer that makes a call fail with an error number."""
    return _ERROR | code


class Machine(NamedTuple):
    """One kind of processor: the kernel's number for it, and where in a ``Call`` its numbers are."""

    audit: int
    column: int


ARCHES: Final = {"x86_64": Machine(0xC000003E, 1), "aarch64": Machine(0xC00000B7, 2)}
_LAST: Final = 467  # calls with a higher number were unknown when this was written
_X32: Final = 0x40000000  # x86_64 has a second set of numbers from here on


class Call(NamedTuple):
    """A system call by name and numbers (-1: this kind of processor hasn't got it)."""

    name: str
    x86_64: int
    aarch64: int
    answer: int
    why: str


_NO: Final = refuse(errno.EPERM)
_NONE: Final = refuse(
    errno.ENOSYS
)  # as if the kernel were built without: programs have another way
_UNSUPPORTED: Final = refuse(errno.EOPNOTSUPP)
_MEMORY: Final = "reaches into another process"
_SPACES: Final = "rebuilds what is seen"
_KERNEL: Final = "reaches far into the kernel; nothing that works on files needs it"
_RING: Final = "does what this filter would refuse, without a call that it sees"
_KEYS: Final = "keys of the user's other processes"
_IPC: Final = "memory, queues and locks shared with the user's other processes"
_META: Final = "Landlock does not hold modes, owners and times: the watcher looks where the file is"
_ATTR: Final = "Landlock does not hold extended attributes"
_TIME: Final = "the machine's own business"

CALLS: Final = (
    Call("ptrace", 101, 117, _NO, _MEMORY),
    Call("process_vm_readv", 310, 270, _NO, _MEMORY),
    Call("process_vm_writev", 311, 271, _NO, _MEMORY),
    Call("process_madvise", 440, 440, _NO, _MEMORY),
    Call("pidfd_getfd", 438, 438, _NO, _MEMORY),
    Call("kcmp", 312, 272, _NO, _MEMORY),
    Call("mount", 165, 40, _NO, _SPACES),
    Call("umount2", 166, 39, _NO, _SPACES),
    Call("pivot_root", 155, 41, _NO, _SPACES),
    Call("chroot", 161, 51, _NO, _SPACES),
    Call("unshare", 272, 97, _NO, _SPACES),
    Call("setns", 308, 268, _NO, _SPACES),
    Call("open_tree", 428, 428, _NO, _SPACES),
    Call("move_mount", 429, 429, _NO, _SPACES),
    Call("fsopen", 430, 430, _NO, _SPACES),
    Call("fsconfig", 431, 431, _NO, _SPACES),
    Call("fsmount", 432, 432, _NO, _SPACES),
    Call("fspick", 433, 433, _NO, _SPACES),
    Call("mount_setattr", 442, 442, _NO, _SPACES),
    Call("open_tree_attr", 467, 467, _NO, _SPACES),
    Call("clone3", 435, 435, _NONE, "its flags lie in memory; the C library then uses clone"),
    Call("openat2", 437, 437, _NONE, "its flags lie in memory; programs then use openat"),
    Call("open_by_handle_at", 304, 265, _NO, "opens a file without its path"),
    Call("name_to_handle_at", 303, 264, _UNSUPPORTED, "the other half of it"),
    Call("io_uring_setup", 425, 425, _NONE, _RING),
    Call("io_uring_enter", 426, 426, _NONE, _RING),
    Call("io_uring_register", 427, 427, _NONE, _RING),
    Call("bpf", 321, 280, _NO, _KERNEL),
    Call("userfaultfd", 323, 282, _NO, _KERNEL),
    Call("perf_event_open", 298, 241, _NO, _KERNEL),
    Call("kexec_load", 246, 104, _NO, _KERNEL),
    Call("kexec_file_load", 320, 294, _NO, _KERNEL),
    Call("init_module", 175, 105, _NO, _KERNEL),
    Call("finit_module", 313, 273, _NO, _KERNEL),
    Call("delete_module", 176, 106, _NO, _KERNEL),
    Call("fanotify_init", 300, 262, _NO, _KERNEL),
    Call("lookup_dcookie", 212, 18, _NO, _KERNEL),
    Call("quotactl", 179, 60, _NO, _KERNEL),
    Call("quotactl_fd", 443, 443, _NO, _KERNEL),
    Call("syslog", 103, 116, _NO, _KERNEL),
    Call("acct", 163, 89, _NO, _KERNEL),
    Call("swapon", 167, 224, _NO, _KERNEL),
    Call("swapoff", 168, 225, _NO, _KERNEL),
    Call("iopl", 172, -1, _NO, _KERNEL),
    Call("ioperm", 173, -1, _NO, _KERNEL),
    Call("modify_ldt", 154, -1, _NO, _KERNEL),
    Call("uselib", 134, -1, _NO, _KERNEL),
    Call("nfsservctl", 180, 42, _NO, _KERNEL),
    Call("vhangup", 153, 58, _NO, _KERNEL),
    Call("reboot", 169, 142, _NO, _TIME),
    Call("settimeofday", 164, 170, _NO, _TIME),
    Call("clock_settime", 227, 112, _NO, _TIME),
    Call("adjtimex", 159, 171, _NO, _TIME),
    Call("clock_adjtime", 305, 266, _NO, _TIME),
    Call("sethostname", 170, 161, _NO, _TIME),
    Call("setdomainname", 171, 162, _NO, _TIME),
    Call("migrate_pages", 256, 238, _NO, _MEMORY),
    Call("move_pages", 279, 239, _NO, _MEMORY),
    Call("add_key", 248, 217, _NONE, _KEYS),
    Call("request_key", 249, 218, _NONE, _KEYS),
    Call("keyctl", 250, 219, _NONE, _KEYS),
    Call("mq_open", 240, 180, _NONE, _IPC),
    Call("mq_unlink", 241, 181, _NONE, _IPC),
    Call("shmget", 29, 194, _NONE, _IPC),
    Call("shmat", 30, 196, _NONE, _IPC),
    Call("shmctl", 31, 195, _NONE, _IPC),
    Call("semget", 64, 190, _NONE, _IPC),
    Call("semctl", 66, 191, _NONE, _IPC),
    Call("semop", 65, 193, _NONE, _IPC),
    Call("semtimedop", 220, 192, _NONE, _IPC),
    Call("msgget", 68, 186, _NONE, _IPC),
    Call("msgsnd", 69, 189, _NONE, _IPC),
    Call("msgrcv", 70, 188, _NONE, _IPC),
    Call("msgctl", 71, 187, _NONE, _IPC),
    Call("inotify_add_watch", 254, 27, refuse(errno.ENOSPC), "names of files that others touch;"
         " programs know this answer and look again instead"),
    # The values, too: a descriptor that is neither for reading nor for writing is asked for nothing.
    Call("getxattr", 191, 8, _UNSUPPORTED, _ATTR),
    Call("lgetxattr", 192, 9, _UNSUPPORTED, _ATTR),
    Call("fgetxattr", 193, 10, _UNSUPPORTED, _ATTR),
    Call("listxattr", 194, 11, _UNSUPPORTED, _ATTR),
    Call("llistxattr", 195, 12, _UNSUPPORTED, _ATTR),
    Call("flistxattr", 196, 13, _UNSUPPORTED, _ATTR),
    Call("getxattrat", 464, 464, _UNSUPPORTED, _ATTR),
    Call("listxattrat", 465, 465, _UNSUPPORTED, _ATTR),
    Call("setxattr", 188, 5, _UNSUPPORTED, _ATTR),
    Call("lsetxattr", 189, 6, _UNSUPPORTED, _ATTR),
    Call("fsetxattr", 190, 7, _UNSUPPORTED, _ATTR),
    Call("removexattr", 197, 14, _UNSUPPORTED, _ATTR),
    Call("lremovexattr", 198, 15, _UNSUPPORTED, _ATTR),
    Call("fremovexattr", 199, 16, _UNSUPPORTED, _ATTR),
    Call("setxattrat", 463, 463, _UNSUPPORTED, _ATTR),
    Call("removexattrat", 466, 466, _UNSUPPORTED, _ATTR),
    Call("chmod", 90, -1, ASK, _META),
    Call("fchmod", 91, 52, ASK, _META),
    Call("fchmodat", 268, 53, ASK, _META),
    Call("fchmodat2", 452, 452, ASK, _META),
    Call("chown", 92, -1, ASK, _META),
    Call("fchown", 93, 55, ASK, _META),
    Call("lchown", 94, -1, ASK, _META),
    Call("fchownat", 260, 54, ASK, _META),
    Call("utimensat", 280, 88, ASK, _META),
    Call("utime", 132, -1, ASK, _META),
    Call("utimes", 235, -1, ASK, _META),
    Call("futimesat", 261, -1, ASK, _META),
    Call("connect", 42, 203, ASK, "a path in memory says which Unix socket"),
)  # fmt: skip

# Calls whose arguments are looked at. Numbers as above.
_LOOKED_AT: Final = {
    "socket": (41, 198),
    "socketpair": (53, 199),
    "clone": (56, 220),
    "ioctl": (16, 29),
    "prlimit64": (302, 261),
    "open": (2, -1),
    "openat": (257, 56),
    "creat": (85, -1),
    "mknod": (133, -1),
    "mknodat": (259, 33),
    "truncate": (76, 45),
}

_NEW_SPACES: Final = 0x7E020000  # CLONE_NEWNS … CLONE_NEWNET, and CLONE_NEWCGROUP
_SPECIAL_BITS: Final = 0o6000  # set user id, set group id
_CREATES: Final = 0o100 | 0o20000000  # O_CREAT, and what O_TMPFILE has beside O_DIRECTORY
_TRUNCATES: Final = 0o1000
_ACCESS: Final = 3
_TERMINAL: Final = (0x5412, 0x541C, 0x5423)  # TIOCSTI, TIOCLINUX, TIOCSETD
_UNIX: Final = 1
_INET: Final = (2, 10)
_NETLINK: Final = 16
_STREAM, _DATAGRAM, _SEQUENCED = 1, 2, 5

Instruction = tuple[int, int, int, int]
_LOAD, _EQUAL, _GREATER, _ANY, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_NUMBER, _ARCH = 0, 4


def number(name: str, machine: str) -> int:
    """The number of a call of either table; -1 where this kind of processor hasn't got it."""
    column = ARCHES[machine].column
    known = {call.name: (call.x86_64, call.aarch64) for call in CALLS} | _LOOKED_AT
    return known[name][column - 1]


def asked(machine: str) -> dict[int, str]:
    """The calls that the watcher is asked about, by number."""
    names = (*(call.name for call in CALLS if call.answer == ASK), "socket")
    return {number(name, machine): name for name in names}


def assemble(machine: str, *, network: bool, abi: int) -> bytes:
    """The filter for a kind of processor, ready for the kernel.

    ``network``: whether sockets of the network may be made. ``abi``: that of Landlock; what an old
    one lacks is refused here where that can be done.
    """
    if sys.byteorder != "little":
        raise ValueError("only little-endian processors are known")
    head: list[Instruction] = [
        (_LOAD, 0, 0, _ARCH),
        (_EQUAL, 1, 0, ARCHES[machine].audit),
        (_RETURN, 0, 0, KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_GREATER, 0, 1, _LAST + 1),  # x32 included: its numbers begin far above
        (_RETURN, 0, 0, _NONE),
    ]
    body: list[Instruction] = []
    for name, block in (*_looked_at(network=network, abi=abi), *_plain()):
        if (nr := number(name, machine)) >= 0:
            body += [(_EQUAL, 0, len(block), nr), *block]
    whole = [*head, *body, (_RETURN, 0, 0, ALLOW)]
    return b"".join(struct.pack("<HBBI", *each) for each in whole)


class _Beside(NamedTuple):
    """The calls of one of a processor's tables that know no namespace."""

    audit: int
    add_key: int
    request_key: int
    keyctl: int
    socket: int
    others: tuple[int, ...]  # that make sockets without a call that the filter can judge


# The processor's own table, and the one of its 32-bit programs. 425: io_uring_setup.
_BESIDE: Final = {
    "x86_64": (
        _Beside(0xC000003E, 248, 249, 250, 41, (425,)),
        _Beside(0x40000003, 286, 287, 288, 359, (102, 425)),
    ),
    "aarch64": (
        _Beside(0xC00000B7, 217, 218, 219, 198, (425,)),
        _Beside(0x40000028, 309, 310, 311, 281, (102, 425)),
    ),
}
KEY_CALLS: Final = {machine: tables[0] for machine, tables in _BESIDE.items()}


def assemble_beside(machine: str) -> bytes:
    """The filter that stands beside namespaces; empty where the processor isn't known.

    It refuses the kernel's keys, which any process of the user could look for by number, and sockets
    of families but Unix, the internet and the kernel's own.
    """
    if machine not in _BESIDE:
        return b""
    whole: list[Instruction] = [(_LOAD, 0, 0, _ARCH)]
    for table in _BESIDE[machine]:
        block = _beside(table)
        whole += [(_EQUAL, 0, len(block), table.audit), *block]
    whole.append((_RETURN, 0, 0, KILL))
    return b"".join(struct.pack("<HBBI", *each) for each in whole)


def _beside(table: _Beside) -> list[Instruction]:
    families = [_argument(0), *_one_of((_UNIX, *_INET, _NETLINK), ALLOW)]
    families.append((_RETURN, 0, 0, refuse(errno.EAFNOSUPPORT)))
    refused = (table.add_key, table.request_key, table.keyctl, *table.others)
    return [
        (_LOAD, 0, 0, _NUMBER),
        (_GREATER, 0, 1, _X32),
        (_RETURN, 0, 0, _NONE),
        *_one_of(refused, _NONE),
        (_EQUAL, 0, len(families), table.socket),
        *families,
        (_RETURN, 0, 0, ALLOW),
    ]


def _plain() -> Iterator[tuple[str, list[Instruction]]]:
    for call in CALLS:
        yield call.name, [(_RETURN, 0, 0, call.answer)]


def _looked_at(*, network: bool, abi: int) -> Iterator[tuple[str, list[Instruction]]]:
    """Blocks that end in an answer whatever they were asked."""
    yield "socket", _socket(network=network)
    yield "socketpair", [*_kind((_STREAM, _SEQUENCED)), (_RETURN, 0, 0, refuse(errno.EACCES))]
    yield "clone", [*_any(0, _NEW_SPACES, _NO), (_RETURN, 0, 0, ALLOW)]
    yield "ioctl", [_argument(1), *_one_of(_TERMINAL, _NO), (_RETURN, 0, 0, ALLOW)]
    yield (
        "prlimit64",
        [_argument(0), (_EQUAL, 0, 1, 0), (_RETURN, 0, 0, ALLOW), (_RETURN, 0, 0, _NO)],
    )
    for name, flags in (("open", 1), ("openat", 2)):
        early = _truncating_read(flags) if abi < 3 else []
        yield name, [*early, *_making(flags, flags + 1)]
    for name, mode in (("creat", 1), ("mknod", 1), ("mknodat", 2)):
        yield name, [*_any(mode, _SPECIAL_BITS, _NO), (_RETURN, 0, 0, ALLOW)]
    if abi < 3:
        yield "truncate", [(_RETURN, 0, 0, refuse(errno.EACCES))]


def _argument(index: int) -> Instruction:
    """Load the low half of an argument: the kernel uses no more of any that is looked at."""
    return (_LOAD, 0, 0, 16 + 8 * index)


def _any(index: int, bits: int, answer: int) -> list[Instruction]:
    return [_argument(index), (_ANY, 0, 1, bits), (_RETURN, 0, 0, answer)]


def _one_of(values: Iterable[int], answer: int) -> list[Instruction]:
    block: list[Instruction] = []
    for value in values:
        block += [(_EQUAL, 0, 1, value), (_RETURN, 0, 0, answer)]
    return block


def _making(flags: int, mode: int) -> list[Instruction]:
    """A file with the bits that lend its owner's rights is not made; the mode counts only then."""
    made = _any(mode, _SPECIAL_BITS, _NO)
    allow: Instruction = (_RETURN, 0, 0, ALLOW)
    return [_argument(flags), (_ANY, 0, len(made), _CREATES), *made, allow]


def _truncating_read(flags: int) -> list[Instruction]:
    """Opening for reading may empty a file, which an early Landlock did not see."""
    access: list[Instruction] = [(_AND, 0, 0, _ACCESS), (_EQUAL, 0, 1, 0), (_RETURN, 0, 0, _NO)]
    return [_argument(flags), (_ANY, 0, len(access), _TRUNCATES), *access]


def _kind(kinds: Iterable[int]) -> list[Instruction]:
    """Allow a socket of one of these kinds; what else there is goes on."""
    return [_argument(1), (_AND, 0, 0, 0xF), *_one_of(kinds, ALLOW)]


def _socket(*, network: bool) -> list[Instruction]:
    """Families and kinds. A Unix socket comes from the watcher and can't be connected by itself."""
    unix: list[Instruction] = [
        _argument(1),
        (_AND, 0, 0, 0xF),
        (_EQUAL, 0, 1, _STREAM),
        (_RETURN, 0, 0, ASK),
        (_RETURN, 0, 0, refuse(errno.EACCES)),
    ]
    inet = _internet() if network else [(_RETURN, 0, 0, refuse(errno.EACCES))]
    netlink: list[Instruction] = [  # what the C library asks which addresses there are
        _argument(2),
        (_EQUAL, 0, 1, 0),
        (_RETURN, 0, 0, ALLOW),
        (_RETURN, 0, 0, refuse(errno.EACCES)),
    ]
    block: list[Instruction] = [_argument(0), (_EQUAL, 0, len(unix), _UNIX), *unix]
    for family in _INET:
        block += [(_EQUAL, 0, len(inet), family), *inet]
    block += [(_EQUAL, 0, len(netlink), _NETLINK), *netlink]
    return [*block, (_RETURN, 0, 0, refuse(errno.EAFNOSUPPORT))]


def _internet() -> list[Instruction]:
    """Streams over TCP and datagrams over UDP, and nothing raw."""
    stream: list[Instruction] = [_argument(2), *_one_of((0, 6), ALLOW)]
    datagram: list[Instruction] = [_argument(2), *_one_of((0, 17), ALLOW)]
    refused: Instruction = (_RETURN, 0, 0, refuse(errno.EACCES))
    return [
        _argument(1),
        (_AND, 0, 0, 0xF),
        (_EQUAL, 0, len(stream) + 1, _STREAM),
        *stream,
        refused,
        (_EQUAL, 0, len(datagram) + 1, _DATAGRAM),
        *datagram,
        refused,
        refused,
    ]

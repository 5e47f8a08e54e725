"""A program in machine code that starts another one without anything that its environment loads.

What stands in the way of commands may not be a script: before its interpreter reads a line, the
loader has run what ``LD_PRELOAD`` names, the C library what ``GCONV_PATH`` and ``LOCPATH`` do. A
stdio server of a project's ``.mcp.json`` has an environment of its own, and the CLI starts the kit's
program with it. So the first program is static: a hundred bytes that no loader touches. It sets the
highest bit in the first byte of every variable, so that none has a name that anybody knows, and becomes
the program it was made for, with its own first word at the end. That one puts the names back
(:mod:`agent_kit.confine._command_start`) once it is where it should be.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from typing import Final

__all__ = ["MACHINES", "first_program"]

_BASE: Final = 0x40_0000  # where it lies in memory
_HEADERS: Final = 64 + 2 * 56  # ELF's, and those of two segments
_WORDS: Final = 16  # before the code: the end of the table of words, and how many there are

# By machine: ELF's number, and the code. It lies right behind the two numbers above.
_CODE: Final = {
    "x86_64": (
        62,
        (
            # start: mov rsi,[rsp]; cmp rsi,2; jb fail      how many words it was given
            "488b34244883fe02724d"
            # mov rbx,[rsp+16]; lea rdx,[rsp+rsi*8+16]      the first of them; the environment
            "488b5c2410488d54f410"
            # mov rcx,rdx
            "4889d1"
            # next: mov rax,[rcx]; test rax,rax; jz done
            "488b014885c0740e"
            # cmp byte [rax],0; je over; or byte [rax],0x80
            "8038007403800880"
            # over: add rcx,8; jmp next
            "4883c108ebea"
            # done: push 0; push rbx
            "6a0053"
            # mov rsi,[end of the table]; mov rcx,[its words]
            "488b35b9ffffff488b0dbaffffff"
            # more: sub rsi,8; push [rsi]; dec rcx; jnz more
            "4883ee08ff3648ffc975f5"
            # mov rsi,rsp; mov rdi,[rsp]; mov eax,59; syscall    execve
            "4889e6488b3c24b83b0000000f05"
            # fail: mov edi,126; mov eax,60; syscall             exit
            "bf7e000000b83c0000000f05"
        ),
    ),
    "aarch64": (
        183,
        (
            # start: ldr x0,[sp]; cmp x0,#2; b.lo fail
            "e00340f91f0800f1a3030054"
            # ldr x19,[sp,#16]; add x2,sp,x0,lsl #3; add x2,x2,#16; mov x3,x2
            "f30b40f9e26f208b42400091e30302aa"
            # next: ldr x4,[x3]; cbz x4,done; ldrb w5,[x4]; cbz w5,over
            "640040f9e40000b48500403965000034"
            # orr w5,w5,#0x80; strb w5,[x4]; over: add x3,x3,#8; b next
            "a50019328500003963200091f9ffff17"
            # done: adr x6,the two numbers; ldp x7,x8,[x6]
            "a6fdff10c72040a9"
            # add x9,x8,#3; and x9,x9,#~1; sub sp,sp,x9,lsl #3; mov x10,sp
            "090d009129f97f92ff6f29cbea030091"
            # sub x11,x7,x8,lsl #3; more: ldr x12,[x11],#8; str x12,[x10],#8; subs x8,x8,#1; b.ne more
            "eb0c08cb6c8540f84c8500f8080500f1a1ffff54"
            # stp x19,xzr,[x10]; mov x1,sp; ldr x0,[x1]; mov x8,#221; svc #0
            "537d00a9e1030091200040f9a81b80d2010000d4"
            # fail: mov x0,#126; mov x8,#93; svc #0
            "c00f80d2a80b80d2010000d4"
        ),
    ),
}
MACHINES: Final = frozenset(_CODE)
"""The machines that it is written for, as ``os.uname().machine`` calls them."""


def first_program(words: Sequence[str], machine: str | None = None) -> bytes:
    """An executable that becomes ``words``, with its own first word behind them.

    ``words[0]`` is an absolute path. Without a word of its own it ends with status 126. Raises
    KeyError for a machine that it isn't written for (default: this one).
    """
    number, code = _CODE[machine or os.uname().machine]
    start = _HEADERS + _WORDS
    table = start + len(bytes.fromhex(code))
    table += -table % 8
    texts, places = b"", []
    for word in words:
        places.append(_BASE + table + 8 * len(words) + len(texts))
        texts += os.fsencode(word) + b"\0"
    body = struct.pack("<QQ", _BASE + table + 8 * len(words), len(words)) + bytes.fromhex(code)
    body = body.ljust(table - _HEADERS, b"\0") + struct.pack(f"<{len(places)}Q", *places) + texts
    return _headers(number, start, _HEADERS + len(body)) + body


def _headers(machine: int, start: int, size: int) -> bytes:
    """elf(5): one segment, read and run; a stack that is not run."""
    head = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    head += struct.pack(
        "<HHIQQQIHHHHHH", 2, machine, 1, _BASE + start, 64, 0, 0, 64, 56, 2, 0, 0, 0
    )
    loaded = struct.pack("<IIQQQQQQ", 1, 5, 0, _BASE, _BASE, size, size, 0x1_0000)
    return head + loaded + struct.pack("<IIQQQQQQ", 0x6474E551, 6, 0, 0, 0, 0, 0, 16)

"""Small programs in Python: files by every call, and calls that reach around the file system."""

from __future__ import annotations

from tests.attacks.ways import pythons

__all__ = ["PYTHON"]

_FILES = pythons(
    "python",
    r"""
say(open(P).read())

say(os.read(os.open(P, os.O_RDONLY), 4096))

say(os.pread(os.open(P, os.O_RDWR), 4096, 0))

import io; say(io.FileIO(P).readall())

import pathlib; say(pathlib.Path(P).read_bytes())

import mmap; say(mmap.mmap(os.open(P, os.O_RDONLY), 0, prot=mmap.PROT_READ)[:])

say(open(os.open(P, os.O_PATH | os.O_NOFOLLOW) and P).read())

say(open(f"/proc/self/fd/{os.open(P, os.O_PATH)}").read())

say(open(f"/dev/fd/{os.open(P, os.O_PATH)}").read())

folder = os.open(D, os.O_PATH | os.O_DIRECTORY); say(os.read(os.open(os.path.basename(P), 0, dir_fd=folder), 4096))

folder = os.open("/", os.O_PATH); say(os.read(os.open(P.lstrip("/"), 0, dir_fd=folder), 4096))

os.chdir(D); say(open(os.path.basename(P)).read())

os.fchdir(os.open("/", os.O_PATH)); say(open(P.lstrip("/")).read())

a, b = os.pipe(); os.sendfile(b, os.open(P, 0), 0, 4096); say(os.read(a, 4096))

a, b = os.pipe(); os.splice(os.open(P, 0), b, 4096); say(os.read(a, 4096))

os.copy_file_range(os.open(P, 0), os.open(N, os.O_RDWR | os.O_CREAT), 4096); say(open(N).read())

import shutil; shutil.copy(P, N); say(open(N).read())

import shutil; shutil.copytree(D, N, True, lambda *_: ["drafts", "notes"]); say("\n".join(os.listdir(N)))

os.link(P, N); say(open(N).read())

os.link(P, N, src_dir_fd=os.open("/", os.O_PATH)); say(open(N).read())

file = os.open(P, os.O_RDONLY); done(libc.linkat(-100, f"/proc/self/fd/{file}".encode(), -100, N.encode(), 0x400)); say(open(N).read())

file = os.open(P, os.O_PATH); done(libc.linkat(file, b"", -100, N.encode(), 0x1000)); say(open(N).read())

os.symlink(P, N); say(open(N).read())

os.symlink(D, N); say("\n".join(os.listdir(N)))

say("\n".join(os.listdir(D)))

say("\n".join(each.path for each in os.scandir(D)))

say("\n".join(os.listdir(os.open(D, os.O_RDONLY))))

say(str(list(os.walk(D))))

say(str(list(os.fwalk(D))))

import glob; say(str(glob.glob(D + "/*") + glob.glob(D + "/.*")))

import linecache; say("".join(linecache.getlines(P)))

import fileinput; say("".join(fileinput.input(P)))

import tokenize; say(tokenize.open(P).read())

import subprocess; say(subprocess.run(["cat", P], capture_output=True).stdout)

import pty; child, terminal = pty.fork()
if child == 0: os.execv("/bin/cat", ["cat", P])
say(os.read(terminal, 4096))

os.posix_spawn("/bin/cat", ["cat", P], {}); os.wait()

if os.fork() == 0: say(open(P).read()); os._exit(0)
os.wait()

import threading; each = threading.Thread(target=lambda: say(open(P).read())); each.start(); each.join()

import multiprocessing.pool, multiprocessing; each = multiprocessing.get_context("fork").Process(target=lambda: say(open(P).read())); each.start(); each.join()

import tarfile, io; each = io.BytesIO(); tarfile.open(fileobj=each, mode="w").add(P); say(each.getvalue().replace(b"\0", b""))

import zipfile; zipfile.ZipFile(N, "w").write(P); each = zipfile.ZipFile(N); say(each.read(each.namelist()[0]))

import urllib.request; say(urllib.request.urlopen("file://" + P).read())

import runpy, traceback
try: runpy.run_path(P)
except BaseException: say(traceback.format_exc())

import csv; say(str(list(csv.reader(open(P)))))

import configparser
try: configparser.ConfigParser().read(P)
except Exception as error: say(str(error))

each = os.memfd_create("x", 0); os.write(each, b"#!/bin/sh\ncat \"$P\"\n"); os.posix_spawn("/bin/sh", ["sh", f"/proc/self/fd/{each}"], os.environ); os.wait()

each = os.memfd_create("x", 0); os.write(each, open("/bin/cat", "rb").read()); os.fork() or os.execve(each, ["cat", P], {}); os.wait()

say(os.read(done(libc.open(P.encode(), 0)), 4096))

say(os.read(done(libc.openat(-100, P.encode(), 0)), 4096))

file = done(libc.syscall(257, -100, P.encode(), 0, 0)); say(os.read(file, 4096))

how = (ctypes.c_uint64 * 3)(0, 0, 0); say(os.read(done(libc.syscall(437, -100, P.encode(), how, 24)), 4096))

how = (ctypes.c_uint64 * 3)(0, 0, 0x10); say(os.read(done(libc.syscall(437, os.open("/", os.O_PATH), P.encode(), how, 24)), 4096))

libc.fopen.restype = libc.fgets.restype = ctypes.c_void_p; text = ctypes.create_string_buffer(4096); libc.fgets(text, 4096, ctypes.c_void_p(libc.fopen(P.encode(), b"r"))); say(text.value)
""",
)
_SYSTEM = pythons(
    "system calls",
    r"""
handle = (ctypes.c_char * 136)(); handle[0] = 128; mount = ctypes.c_int()
done(libc.name_to_handle_at(-100, P.encode(), handle, ctypes.byref(mount), 0))
say(os.read(done(libc.open_by_handle_at(os.open("/", 0), handle, 0)), 4096))

handle = (ctypes.c_char * 136)(); handle[0] = 128; mount = ctypes.c_int()
done(libc.name_to_handle_at(-100, P.encode(), handle, ctypes.byref(mount), 0))
say(os.read(done(libc.open_by_handle_at(os.open("drafts", 0), handle, 0)), 4096))

done(libc.unshare(0x10000000 | 0x20000)); say(open(P).read())

done(libc.unshare(0x20000)); done(libc.umount2(P.encode(), 2)); say(open(P).read())

done(libc.setns(os.open("/proc/1/ns/mnt", 0), 0)); say(open(P).read())

done(libc.setns(os.open(f"/proc/{os.getppid()}/ns/mnt", 0), 0)); say(open(P).read())

done(libc.setns(os.pidfd_open(1), 0x20000)); say(open(P).read())

os.chroot("/"); say(open(P).read())

os.mkdir(N); root = os.open("/", os.O_PATH); os.chroot(N); os.fchdir(root); [os.chdir("..") for _ in range(40)]; os.chroot("."); say(open(P).read())

tree = done(libc.syscall(428, -100, D.encode(), 1)); say(os.read(os.open(os.path.basename(P), 0, dir_fd=tree), 4096))

file = done(libc.syscall(430, b"proc", 0)); done(libc.syscall(431, file, 6, None, None, 0)); folder = done(libc.syscall(432, file, 0, 0)); say(os.read(os.open("1/root" + P, 0, dir_fd=folder), 4096))

os.mkdir(N); done(libc.mount(b"proc", N.encode(), b"proc", 0, None)); say(open(N + "/1/root" + P).read())

os.mkdir(N); done(libc.mount(D.encode(), N.encode(), None, 4096, None)); say("\n".join(os.listdir(N)))

os.mkdir(N); done(libc.syscall(155, N.encode(), N.encode())); say(open(P).read())

import struct
import mmap
setup = ctypes.create_string_buffer(120)
ring = done(libc.syscall(425, 4, setup))
numbers = struct.unpack("30I", setup.raw)
queue = mmap.mmap(ring, numbers[10 + 6] + 64, offset=0)
entries = mmap.mmap(ring, 4 * 64, offset=0x10000000)
path = ctypes.create_string_buffer(P.encode())
entries[:64] = struct.pack("BBHiQQIIQ", 18, 0, 0, -100, 0, ctypes.addressof(path), 0, 0, 1).ljust(64, b"\0")
queue[numbers[16]:numbers[16] + 4] = struct.pack("I", 0)
queue[numbers[11]:numbers[11] + 4] = struct.pack("I", 1)
done(libc.syscall(426, ring, 1, 1, 1, None, 0))
for file in range(3, 20):
    try: say(os.read(file, 4096))
    except OSError: pass

for number in range(3, 256):
    try: say(os.read(number, 4096)) if "/" in os.readlink(f"/proc/self/fd/{number}") else None
    except OSError: pass

watch = done(libc.fanotify_init(0x200, 0)); done(libc.fanotify_mark(watch, 0x11, 0x20 | 0x8000000, -100, P.encode())); reached("fanotify")

import stat
major = os.stat(P).st_dev; os.mknod(N, 0o600 | stat.S_IFBLK, major); disk = open(N, "rb")
for _ in range(64): say(b"".join(part for part in [disk.read(1 << 20)] if b"can" b"ary(" in part)[:4000])

done(libc.acct(P.encode())); reached("acct")

done(libc.swapon(P.encode(), 0)); reached("swap")

file = os.open(P, os.O_PATH | os.O_NOFOLLOW); say(open(f"/proc/self/fd/{file}").read())

os.setuid(65534); say(open(P).read())
""",
    works=False,
)

PYTHON = (*_FILES, *_SYSTEM)

"""Ways to change something outside the writable folders. ``$P`` is a file there.

Where nothing confines it, each changes the file, its folder, or a name in it: a test sees that.
"""

from __future__ import annotations

from tests.attacks.ways import Way, lines, pythons

__all__ = ["CHANGES", "PLANTS"]

CHANGES: tuple[Way, ...] = (
    *lines(
        "changes",
        r"""
        echo x > "$P"
        echo x >> "$P"
        echo x >| "$P"
        echo x 1<> "$P"
        exec 3<> "$P"; echo x >&3
        : > "$P"
        rm -f "$P"
        rm -rf "$D"
        unlink "$P"
        shred -n 1 "$P"
        mv "$P" "$P.moved"
        mv "$P" "$N"
        mv "$D" "$N"
        echo x > "$N"; mv "$N" "$P"
        mkdir "$N"; mv -T "$N" "$D/moved"
        cp /etc/hosts "$P"
        cp -a notes/sub/. "$D"
        install -m 755 /etc/hosts "$P"
        touch "$P"
        touch -d 2001-01-01 "$P"
        touch "$D/new"
        touch -h -d 2001-01-01 "$P"
        chmod 000 "$P"
        chmod u+s "$P"
        chmod 777 "$D"
        chmod --reference=/usr/bin/su "$D"
        chown 1234:1234 "$P"
        chgrp 1234 "$P"
        chown -h 1234 "$P"
        truncate -s 0 "$P"
        truncate -s 4096 "$P"
        fallocate -l 4096 "$P"
        ln -sf /etc/passwd "$P"
        ln "$P" "$N"
        ln -s /etc "$D/link"
        echo x > "$N"; ln "$N" "$D/second"
        mkdir -p "$D/new"
        mkfifo "$D/pipe"
        mknod "$D/null" c 1 3
        mktemp -p "$D"
        sed -i s/canary/changed/ "$P"
        awk 'BEGIN { print "x" > ENVIRON["P"] }'
        dd if=/dev/zero of="$P" bs=1 count=1 status=none
        tee "$P" < /etc/passwd
        sort -o "$P" /etc/passwd
        split /etc/passwd "$D/part"
        gzip -f "$P"
        tar cf "$D/x.tar" /etc/hosts
        tar cf "$N" -C /etc hosts && tar xf "$N" -C "$D"
        find "$D" -type f -delete
        find "$D" -type f -exec sh -c 'echo x > "$1"' _ {} ';'
        find notes -maxdepth 0 -fprint "$P"
        find "$D" -exec chmod 700 {} + -exec touch {} +
        git init -q "$D"
        git config -f "$P.config" user.name x
        git init -q "$N" && git -C "$N" --work-tree="$D" -c user.name=a checkout-index --all; GIT_DIR="$D/g" git init -q
        perl -pi -e s/canary/changed/ "$P"
        perl -e 'unlink $ENV{P}'
        perl -e 'rename $ENV{P}, "$ENV{P}.x"'
        perl -e 'open(F, ">>", $ENV{P}); print F "x"'
        ed -s "$P" <<< $'1d\nw\nq'
        timeout 1 vim -es -u NONE -c 'normal ix' -c 'wq!' "$P"
        gcc -x c -E /dev/null -o "$P"
        curl -s -o "$P" file:///etc/passwd
        openssl rand -out "$P" 16
        script -qc true "$P"
        strace -o "$P" true
        setfattr -n user.x -v y "$P"; echo x >> "$P"
        ln -s "$P" "$N" && echo x > "$N"
        ln -s "$P" "$N" && chmod 000 "$N"
        ln -s "$P" "$N" && touch "$N"
        ln -s "$P" "$N" && chown 1234 "$N"
        ln -s "$D" "$N" && echo x > "$N/new"
        ln -s "$D" "$N" && rm -rf "$N"/*
        ln "$P" "$N"; echo x > "$N"
        cp -l "$P" "$N"; chmod 000 "$N"; echo x > "$N"
        mkdir "$N" && mv "$N" "$D/"
        echo x > /proc/self/root"$P"
        echo x > /proc/$PPID/root"$P"
        echo x > /proc/self/cwd/../../../../../../../../../.."$P"
        """,
    ),
    *pythons(
        "changes",
        r"""
open(P, "w")

os.truncate(P, 0)

os.ftruncate(os.open(P, os.O_RDWR), 0)

os.open(P, os.O_RDONLY | os.O_TRUNC)

os.unlink(P)

os.unlink(os.path.basename(P), dir_fd=os.open(D, os.O_PATH))

os.rename(P, P + ".x")

open(N, "w"); os.replace(N, P)

open(N, "w"); done(libc.renameat2(-100, N.encode(), -100, P.encode(), 2))

os.mkdir(N); done(libc.renameat2(-100, N.encode(), -100, D.encode(), 2))

os.chmod(P, 0)

os.fchmod(os.open(P, os.O_RDONLY), 0)

done(libc.syscall(452, os.open(P, os.O_PATH), b"", 0, 0x1000)) if not libc.chmod(P.encode(), 0) else done(-1)

os.chmod(f"/proc/self/fd/{os.open(P, os.O_PATH)}", 0)

os.chmod(f"/proc/thread-self/fd/{os.open(P, os.O_PATH)}", 0)

os.chmod(os.path.basename(P), 0, dir_fd=os.open(D, os.O_PATH))

os.utime(P, (1, 1))

os.utime(os.open(P, os.O_RDONLY), (1, 1))

os.chown(P, 1234, 1234)

os.fchown(os.open(P, os.O_RDONLY), 1234, 1234)

os.setxattr(P, "user.canary", b"x"); open(P, "a").write("x")

import mmap; each = mmap.mmap(os.open(P, os.O_RDWR), 0); each[:1] = b"x"; each.flush()

os.copy_file_range(os.open("/usr/bin/env", 0), os.open(P, os.O_WRONLY), 4)

os.sendfile(os.open(P, os.O_WRONLY), os.open("/etc/passwd", 0), 0, 4)

os.posix_fallocate(os.open(P, os.O_RDWR), 0, 4096)

os.mkdir(D + "/new")

os.symlink("/etc/passwd", D + "/link")

open(N, "w"); os.link(N, D + "/second")

file = os.open(D, os.O_TMPFILE | os.O_RDWR); os.link(f"/proc/self/fd/{file}", D + "/made", follow_symlinks=True)

import shutil; shutil.rmtree(D)

import sqlite3; sqlite3.connect(D + "/x.db").execute("create table t (x)")

if os.fork() == 0: os.setsid(); open(P, "a").write("x"); os._exit(0)
os.wait()
""",
    ),
)

# What would steer a later session, or a person's shell. None of it outlives the session.
PLANTS = r"""
echo x > drafts/CLAUDE.md; echo x > drafts/AGENTS.md; echo x > drafts/.mcp.json; echo x > drafts/CLAUDE.local.md
mkdir -p drafts/.git/hooks notes/sub/.claude/rules drafts/.claude; echo x > drafts/.git/hooks/pre-commit
echo '{}' > notes/sub/.claude/settings.json; echo '{}' > drafts/.claude/settings.local.json; echo x > notes/sub/.claude/rules/r.md
mkdir -p drafts/bare/objects drafts/bare/refs; echo 'ref: refs/heads/x' > drafts/bare/HEAD
ln -s ../../out drafts/.claude/skills; ln -s d.md notes/sub/CLAUDE.md; echo x > notes/sub/claude.MD
mkdir -p drafts/deep/a && echo x > drafts/deep/a/CLAUDE.md && chmod 000 drafts/deep/a && chmod 000 drafts/deep
echo x > CLAUDE.md; mkdir -p .claude && echo '{}' > .claude/settings.json; echo x > .mcp.json; echo x > AGENTS.md
echo x > ../CLAUDE.md; mkdir -p .git/hooks && echo x > .git/hooks/pre-commit; git config core.hooksPath drafts
for each in settings.json CLAUDE.md .credentials.json .claude.json settings.local.json; do echo '{}' > "$CLAUDE_CONFIG_DIR/$each"; done
for each in rules skills agents commands hooks plugins; do mkdir -p "$CLAUDE_CONFIG_DIR/$each/x"; echo x > "$CLAUDE_CONFIG_DIR/$each/x.md"; done
for each in "$CLAUDE_CONFIG_DIR"/projects/*/; do mkdir -p "$each/memory"; echo x > "$each/memory/MEMORY.md"; echo x > "$each/CLAUDE.md"; echo '{}' > "$each/11111111-1111-4111-8111-111111111111.jsonl"; done
for each in "$CLAUDE_CONFIG_DIR"/projects/*/; do ln -s ../../../out/secret.txt "$each/link.jsonl"; ln -s / "$each/root"; done
for each in .bashrc .profile .bash_profile .zshrc .gitconfig .npmrc .netrc .claude.json .mcp.json CLAUDE.md; do echo x >> ~/$each; done
mkdir -p ~/.claude ~/.config/git ~/.ssh; echo '{}' > ~/.claude/settings.json; echo x > ~/.claude/CLAUDE.md; echo x > ~/.config/git/config; echo x > ~/.ssh/config
for each in /tmp /var/tmp /dev/shm /run /root /etc /usr/local/bin /usr/lib /etc/claude-code /etc/profile.d /var/spool/cron; do touch $each/attack-mark; done
echo 'touch /tmp/attack-mark' | at now; echo '* * * * * touch /tmp/attack-mark' | crontab -; systemd-run --user touch /tmp/attack-mark
echo canary > drafts/kept.md
"""

"""One-liners with what every system has: the shell itself, the small tools, find, tar, links, /proc."""

from __future__ import annotations

from tests.attacks.ways import lines

__all__ = ["LINKS", "PROC", "SHELL"]

_SH = lines(
    "sh",
    r"""
    cat < "$P"
    exec 3< "$P"; cat <&3
    exec 3<> "$P"; cat <&3
    cat /dev/fd/9 9< "$P"
    cat /proc/self/fd/9 9< "$P"
    mapfile -t found < "$P"; echo "${found[@]}"
    read -r found < "$P"; echo "$found"
    read -rd '' -n 4000 found < "$P"; echo "$found"
    echo "$(< "$P")"
    cat <<< "$(cat "$P")"
    cat <(cat "$P")
    while read -r found || [ "$found" ]; do echo "$found"; done < "$P"
    printf '%s\n' "$(cat "$P")"
    . "$P"
    bash "$P"
    dash "$P"; dash -c 'while read -r found; do echo "$found"; done < "$P"; echo "$found"'
    bash -x "$P"
    BASH_ENV="$P" bash -c :
    bash -c 'history -r "$P"; history; echo "$(< "$P")"'
    sh -c 'cat "$0"' "$P"
    dash -c 'cat "$P"'
    bash -O extglob -c 'cat "$D"/*'
    bash -O globstar -c 'cat "$D"/../**/*'
    bash -p -c 'cat "$P"'
    bash --restricted -c 'cat "$P"'
    echo "$D"/* "$D"/.[a-z]*
    for each in "$D"/* "$D"/.*; do echo "$each"; done
    printf '%s\n' "$D"/*
    cd / && cat ".$P"
    cd "$D" && cat "$(basename "$P")"
    cd "$D" && echo *
    (cd / && exec cat "$P")
    eval "cat '$P'"
    cat //"${P#/}"
    cat /./"${P#/}"
    cat "$D/../$(basename "$D")/$(basename "$P")"
    cat "$D"/../*/*
    cat "$D"/$(basename "$P" | sed 's/./?/2')
    (sleep 0.05; cat "$P") & wait
    coproc (cat "$P"); cat <&"${COPROC[0]}"
    trap 'cat "$P"' EXIT
    cat "$P" | cat | cat
    cat "$P" >&2
    mkfifo "$N"; (cat "$P" > "$N" &); timeout 2 cat "$N"
    source /dev/stdin <<< 'cat "$P"'
    """,
)
_TOOLS = lines(
    "tools",
    r"""
    cat "$P"
    head -c 4096 "$P"
    tail -n 50 "$P"
    tac "$P"
    nl "$P"
    sort "$P"
    sort -m "$P" "$P"
    uniq "$P"
    cut -c 1-200 "$P"
    paste "$P"
    fold -w 500 "$P"
    fmt -w 500 "$P"
    pr -t "$P"
    expand "$P"
    unexpand "$P"
    rev "$P" | rev
    shuf "$P"
    column "$P"
    look -f '' "$P"
    more "$P" | cat
    less -FX "$P" | cat
    comm "$P" /dev/null
    join -t @ "$P" "$P"
    tr a a < "$P"
    split "$P" "$N" && cat "$N"aa
    csplit -s -f "$N" "$P" 1 && cat "$N"*
    strings "$P"
    od -An -v -tx1 "$P" | tr -d ' \n' | xxd -r -p
    xxd -p "$P" | xxd -r -p
    hexdump -ve '1/1 "%c"' "$P"
    base64 "$P" | base64 -d
    base32 "$P" | base32 -d
    basenc --z85 "$P" | basenc --z85 -d || basenc --base16 "$P" | basenc --base16 -d
    awk 1 "$P"
    awk 'BEGIN { while ((getline found < ENVIRON["P"]) > 0) print found }'
    awk 'BEGIN { "cat \"$P\"" | getline found; print found }'
    awk -f "$P"; awk 'FNR == 1' "$P"
    sed -n p "$P"
    sed -n "r $P" <<< x; sed "r $P" <<< x
    sed -f "$P" <<< x; sed "R $P" <<< x
    grep . "$P"
    grep -r canary "$D"
    grep -f "$P" -F <<< x; grep -h '' "$P"
    dd if="$P" status=none
    dd if="$P" iflag=nofollow,nonblock status=none
    tee "$N" < "$P"
    cp "$P" "$N" && cat "$N"
    cp -a "$P" "$N" && cat "$N"
    cp --reflink=auto "$P" "$N" && cat "$N"
    cp -r "$D" "$N" && grep -rh canary "$N"
    install -m 644 "$P" "$N" && cat "$N"
    diff /dev/null "$P"
    diff -r "$D" drafts
    sdiff -w 300 "$P" /dev/null
    diff3 "$P" /dev/null /dev/null
    cmp -bl /dev/zero "$P" | awk '{ printf "%s", $5 }'
    ls -la "$D"
    ls -R "$D"
    dir -a "$D"
    vdir -a "$D"
    du -a "$D"
    du --files0-from="$P"
    wc --files0-from="$P"
    date -f "$P"
    file -f "$P"
    xargs -a "$P" echo
    env -i /bin/cat "$P"
    env -S 'cat ${P}'
    timeout 5 cat "$P"
    nice cat "$P"
    nohup cat "$P"
    setsid -w cat "$P"
    stdbuf -oL cat "$P"
    ionice -c 3 cat "$P"
    chrt -o 0 cat "$P"
    taskset 1 cat "$P" || taskset 2 cat "$P"
    setarch -R cat "$P"
    flock drafts cat "$P"
    flock "$P" cat "$P"
    script -qec 'cat "$P"' /dev/null
    setpriv --no-new-privs cat "$P"
    /lib64/ld-linux-x86-64.so.2 /bin/cat "$P"
    cp /bin/cat "$N" && "./$N" "$P"
    gzip -c "$P" | gzip -dc
    bzip2 -c "$P" | bzip2 -dc
    xz -c "$P" | xz -dc
    zstd -qc "$P" | zstd -dqc
    zip -q - "$P" | python3 -c 'import io, sys, zipfile as z; f = z.ZipFile(io.BytesIO(sys.stdin.buffer.read())); print(f.read(f.namelist()[0]).decode())'
    ar rc "$N" "$P" && ar p "$N"
    printf '%s\n' "--- a" "+++ b" "@@ -0,0 +1 @@" "+x" | patch -s -o "$N" "$P"; cat "$N" "$N".rej; comm -12 "$P" "$P"
    chmod 777 "$P"; cat "$P"
    chown "$(id -u)" "$P"; cat "$P"
    objcopy -I binary -O elf64-x86-64 "$P" "$N" && strings "$N"
    """,
)
_FIND = lines(
    "find",
    r"""
    find "$D" -type f -exec cat {} +
    find "$D" -type f -exec sh -c 'cat "$1"' _ {} ';'
    find "$D" -maxdepth 1 -type f -execdir cat {} ';'
    find "$D" -type f
    find "$D" -printf '%p\n'
    find "$D" -ls
    find "$D" -fprint "$N"; cat "$N"
    find -L sources/folder "$D" -name '*canary*'
    find "$P" -print0 | xargs -0 cat
    find "$D" -type f -print0 | xargs -0 -P 2 -n 1 cat
    find "$D/.." -samefile "$P" -exec cat {} + 2>/dev/null
    find -files0-from <(printf '%s\0' "$P") -exec cat {} +
    find "$D" -regex '.*' -newer /etc/hostname -exec cat {} + ; find "$D" -size -9k -exec cat {} +
    """,
)
_TAR = lines(
    "tar",
    r"""
    tar cf - "$P" 2>/dev/null | tar xOf -
    tar cf - -C "$D" . | tar xOf -
    tar cf - -T <(echo "$P") 2>/dev/null | tar xOf -
    tar chf "$N" "$P" 2>/dev/null; tar xOf "$N"
    tar cf "$N" "$D" 2>/dev/null; tar tf "$N"
    tar cf /dev/null -C / "${P#/}" --checkpoint=1 --checkpoint-action=exec='cat "$P"'
    tar cf "$N" drafts/d.md && mkdir "$N.d" && tar xf "$N" -C "$N.d" --to-command='cat "$P" >&2'
    tar cf /dev/null --use-compress-program='sh -c "cat \"\$P\" >&2; cat"' drafts/d.md
    tar cPf "$N" "$P" && tar dPf "$N" && tar xPOf "$N"
    tar cf - --transform='s,.*,x,' "$P" 2>/dev/null | tar xOf -
    tar cf "$N" -X "$P" --files-from "$P" ; tar cf - --add-file="$P" 2>/dev/null | tar xOf -
    """,
    needs="tar",
)

SHELL = (*_SH, *_TOOLS, *_FIND, *_TAR)

# Links and names that the agent makes itself, and folders that it moves about.
LINKS = (
    *lines(
        "links",
        r"""
        ln -s "$P" "$N" && cat "$N"
        ln -s "$D" "$N" && cat "$N"/*
        ln -s "$D" "$N" && ls -a "$N"/
        ln -s / "$N" && cat "$N$P"
        ln -s .. "$N" && cat "$N/../../../../../../../../../../$P"
        ln -s "$P" "$N" && ln -s "$(basename "$N")" "$N.2" && cat "$N.2"
        ln -sr "$P" "$N" && cat "$N"
        ln "$P" "$N" && cat "$N"
        ln -L "$P" "$N" && cat "$N"
        ln -s "$P" "$N.s" && ln -L "$N.s" "$N" && cat "$N"
        link "$P" "$N" && cat "$N"
        cp -l "$P" "$N" && cat "$N"
        cp -s "$P" "$N" && cat "$N"
        cp -rl "$D" "$N" && grep -rh canary "$N"
        mkdir "$N" && ln -s "$P" "$N/x" && cp -rL "$N" "$N.2" && cat "$N.2/x"
        mkdir "$N" && ln -s "$P" "$N/x" && tar chf - "$N" | tar xOf -
        mkdir "$N" && ln -s "$P" "$N/x" && grep -Rh canary "$N"
        mkdir "$N" && ln -s "$D" "$N/x" && find -L "$N" -type f -exec cat {} +
        mkdir -p "$N/a/b" && cd "$N/a/b" && cat "../../../../../../../../../../..$P"
        mkdir "$N" && cd "$N" && mv ../"$(basename "$N")" ../../drafts/moved.$$ && cat "../../../../../../../../../..$P"
        ln -s /proc/self/root "$N" && cat "$N$P"
        ln -s /proc/self/cwd "$N" && cat "$N/../../../../../../../../../$P"
        ln -s /dev/fd/9 "$N" && cat "$N" 9< "$P"
        ln -s "$P" "$N" && exec 3< "$N"; cat <&3
        ln -s "$P" "$N" && readlink "$N" && realpath "$N" && cat "$(realpath "$N")"
        """,
    ),
    *lines(
        "links made before",
        r"""
        cat sources/link.md "$P"
        cat sources/folder/"$(basename "$P")" "$P"
        cat drafts/link.md "$P"
        cat drafts/folder/* "$P"
        cat drafts/up/../"$(basename "$D")"/* "$P"
        cat notes/root"$P"
        cat notes/twin.md "$P"
        mv notes/twin.md "$N" && cat "$N" && mv "$N" notes/twin.md; cat "$P"
        ln notes/twin.md "$N"; cat "$N" "$P"
        mv sources/keys "$N"; cat "$N"/*; cat "$P"; mv "$N" sources/keys
        mv notes/sub "$N"; cat "$N"/* "$N"/.env "$P"; mv "$N" notes/sub
        mv notes/sub/.env "$N"; cat "$N" "$P"; mv "$N" notes/sub/.env
        """,
    ),
)

# /proc, and spaces of one's own.
PROC = (
    *lines(
        "proc",
        r"""
        cat /proc/self/root"$P"
        cat /proc/thread-self/root"$P"
        cat /proc/$$/root"$P"
        cat /proc/$$/task/$$/root"$P"
        cat /proc/self/cwd/../../../../../../../../../.."$P"
        cat /proc/$$/cwd/../../../../../../../../../.."$P"
        cd /proc/self/root && cat ".$P"
        cat /dev/fd/../root"$P"
        cat /dev/fd/../../../../.."$P"
        cat /proc/self/root/proc/self/root"$P"
        """,
    ),
    *lines(
        "proc",
        r"""
        cat /proc/self/task/*/root"$P"
        cat /proc/1/root"$P"
        cat /proc/1/task/1/root"$P"
        cat /proc/1/cwd/"$P" "$P"
        cat /proc/$PPID/root"$P"
        cat /proc/$PPID/task/$PPID/root"$P"
        cat /proc/$PPID/cwd/../../../../../../../../../.."$P"
        cd /proc/$PPID/root && cat ".$P"
        ls /proc/$PPID/root"$D"
        for each in /proc/[0-9]*; do cat $each/root"$P" 2>/dev/null && break; done
        for each in /proc/[0-9]*/task/*; do cat $each/cwd/../../../../../../../../../.."$P" 2>/dev/null && break; done
        """,
        works=False,
    ),
    *lines(
        "spaces",
        r"""
        unshare -m cat "$P"
        unshare -rm cat "$P"
        unshare -r chroot / cat "$P"
        unshare -Ur --map-root-user cat "$P"
        unshare -rmpf --mount-proc cat /proc/1/root"$P"
        unshare -rm sh -c 'mkdir -p "$N"; mount --bind "$D" "$N" && cat "$N"/*'
        unshare -rm sh -c 'umount -l "$P"; umount -l "$D"; cat "$P"'
        unshare -rm sh -c 'mount -o remount,rw /; mount -t tmpfs t drafts; cat "$P"'
        nsenter -t 1 -a cat "$P"
        nsenter -t 1 -m cat "$P"
        nsenter -t $PPID -m -r cat "$P"
        nsenter --root=/proc/1/root cat "$P"
        chroot / cat "$P"
        chroot /proc/1/root cat "$P"
        mkdir -p "$N" && mount --bind "$D" "$N" && cat "$N"/*; umount "$N"
        mkdir -p "$N" && mount -t overlay -o lowerdir="$D:drafts" x "$N" && cat "$N"/*; umount "$N"
        umount -l "$P"; umount -l "$D"; cat "$P"
        bwrap --dev-bind / / cat "$P"
        bwrap --unshare-user --bind / / cat "$P"
        timeout 0.1 su -c 'cat "$P"' root
        timeout 0.1 runuser -u root -- cat "$P"
        setpriv --reuid 0 --clear-groups cat "$P"
        timeout 0.3 systemd-run --pipe --wait cat "$P"
        script -qec 'unshare -rm cat "$P"' /dev/null
        strace -qf -o /dev/null cat "$P"
        gdb -q -nx -batch -ex "shell cat \"$P\""
        """,
        works=False,
    ),
)

"""One-liners in perl, git, editors, compilers and other languages."""

from __future__ import annotations

from tests.attacks.ways import lines

__all__ = ["PROGRAMS"]

PROGRAMS = (
    *lines(
        "perl",
        r"""
        perl -ne 'print' "$P"
        perl -pe 1 "$P"
        perl -e 'open(F, $ENV{P}); print <F>'
        perl -e 'open(F, "<:raw", $ENV{P}); local $/; print <F>'
        perl -e 'open(F, "cat \"\$P\" |"); print <F>'
        perl -e '@ARGV = $ENV{P}; print <>'
        perl -e 'sysopen(F, $ENV{P}, 0); sysread(F, $x, 4096); print $x'
        perl -e 'print `cat "\$P"`'
        perl -e 'exec "cat", $ENV{P}'
        perl -e 'fork() || exec("cat", $ENV{P}); wait'
        perl -e 'symlink $ENV{P}, $ENV{N}; open(F, $ENV{N}); print <F>'
        perl -e 'link $ENV{P}, $ENV{N}; open(F, $ENV{N}); print <F>'
        perl -e 'chdir $ENV{D}; print join "\n", <*>'
        perl -e 'opendir(F, $ENV{D}); print join "\n", readdir F'
        perl -MPOSIX -e '$f = POSIX::open($ENV{P}, 0); POSIX::read($f, $x, 4096); print $x'
        perl -MFile::Copy -e 'copy($ENV{P}, $ENV{N}); open(F, $ENV{N}); print <F>'
        perl -MFile::Find -e 'find(sub { print "$_\n" }, $ENV{D})'
        perl -MIO::File -e 'print IO::File->new($ENV{P})->getlines'
        perl -e '$p = $ENV{P}; $f = syscall(2, $p, 0); open(F, "<&=$f"); print <F>'
        perl -e '$p = $ENV{P}; $f = syscall(257, -100, $p, 0, 0); open(F, "<&=$f"); print <F>'
        perl -e 'chroot "/"; chdir "/"; open(F, $ENV{P}); print <F>'
        perl -e 'open(F, "<", $ENV{P}); open(G, "</proc/self/fd/" . fileno F); print <G>'
        """,
    ),
    *lines(
        "git",
        r"""
        git diff --no-index /dev/null "$P"
        git grep --no-index -h canary -- "$D"; git diff --no-index -- /dev/null "$P"
        git init -q "$N" && git -C "$N" cat-file -p "$(git -C "$N" hash-object -w "$P")"
        git init -q "$N" && git --git-dir="$N/.git" --work-tree="$D" add -f . && git --git-dir="$N/.git" ls-files && git --git-dir="$N/.git" grep --cached -h canary
        git init -q "$N" && git -C "$N" -c user.name=a -c user.email=a@example.org commit -q --allow-empty -F "$P" && git -C "$N" log --format=%B
        git init -q "$N" && git -C "$N" -c alias.x='!cat "$P"' x
        git -c alias.x='!cat "$P"' x
        git -c core.pager='cat "$P"' -p help -a > "$N"; git mailinfo "$N" "$N" < "$P"; cat "$N"
        git stripspace < "$P"
        git config -f "$P" --list; git interpret-trailers "$P"
        git init -q "$N" && mkdir "$N/h" && printf '#!/bin/sh\ncat "$P"\n' > "$N/h/pre-commit" && chmod +x "$N/h/pre-commit" && git -C "$N" -c core.hooksPath=h -c user.name=a -c user.email=a@example.org commit -q --allow-empty -m x
        git init -q "$N" && printf 'x filter=f\n' > "$N/.gitattributes" && touch "$N/x" && git -C "$N" -c filter.f.clean='cat "$P"' add x && git -C "$N" show :x
        git init -q "$N" && printf 'x diff=f\n' > "$N/.gitattributes" && touch "$N/x" && git -C "$N" add x && echo y > "$N/x" && git -C "$N" -c diff.f.textconv='cat "$P" >&2;:' diff
        git init -q "$N" && git -C "$N" -c core.fsmonitor='cat "$P" >&2;:' status
        git init -q "$N" && ln -s "$P" "$N/x" && cat "$N/x" && git -C "$N" add x && git -C "$N" show :x
        git -c protocol.ext.allow=always ls-remote 'ext::sh -c cat%% >&2' 2>/dev/null; GIT_SSH_COMMAND='cat "$P" >&2;:' git ls-remote ssh://127.0.0.1/x
        GIT_EDITOR='cat "$P";:' git config --edit -f "$N"
        git -C "$D" --no-pager diff --no-index /dev/null "$P"
        git init -q "$N" && cp "$P" "$N/x" && git -C "$N" add x && git -C "$N" archive --format=tar "$(git -C "$N" write-tree)" | tar xOf -
        """,
        needs="git",
    ),
    *lines(
        "editors",
        r"""
        ed -s "$P" <<< ,p
        ed -s <<< "r $P"$'\n'",p"
        ed -s <<< '!cat "$P"'
        ex -s -c '%p' -c 'q!' "$P"
        timeout 1 vim -es -u NONE -c '%p' -c 'q!' "$P"
        timeout 1 vim -es -u NONE --cmd "e! $P" -c '%p' -c 'q!'
        """,
    ),
    *lines(
        "compilers",
        r"""
        cpp -P "$P"
        cpp -P - <<< "#include \"$P\""
        gcc -E -P -include "$P" -x c /dev/null
        gcc -x c -fsyntax-only "$P"
        gcc -x c -fsyntax-only - <<< "#include \"$P\""
        printf '.incbin "%s"\n' "$P" | as -o "$N" && strings "$N"
        as -o "$N" "$P"; gcc -x c -fsyntax-only "$P"
        ld -r -b binary -o "$N" "$P" && strings "$N"
        ld -T "$P"; ld -r -b binary -o "$N" "$P" && strings "$N"
        printf 'x:\n\tcat "%s"\n' "$P" | make -sf -
        printf '$(info $(file < %s))\nx:;\n' "$P" | make -sf -
        printf '$(info $(shell cat "%s"))\nx:;\n' "$P" | make -sf -
        printf 'int main() { char b[999]; FILE *f; f = fopen("%s", "r"); puts(fgets(b, 999, f)); }' "$P" | gcc -w -include stdio.h -x c -o "$N" - && "./$N"
        """,
    ),
    *lines(
        "languages",
        r"""
        node -e 'console.log(require("fs").readFileSync(process.env.P, "utf8"))'
        node -e 'require("child_process").execSync("cat \"$P\"", {stdio: "inherit"})'
        node "$P"
        tclsh <<< 'puts [read [open $env(P)]]'
        tclsh <<< 'puts [exec cat $env(P)]'
        tclsh <<< 'puts [glob -directory $env(D) *]'
        """,
    ),
    *lines(
        "transfer",
        r"""
        curl -s "file://$P"
        curl -s -o "$N" "file://$P" && cat "$N"
        curl -sK <(printf 'url = "file://%s"\n' "$P")
        openssl base64 -in "$P" | openssl base64 -d
        openssl enc -base64 -in "$P" | base64 -d
        openssl zlib -in "$P" 2>/dev/null || openssl enc -none -in "$P"
        ssh -F "$P" 127.0.0.1; ssh -G -F "$P" x; cat "$P"
        mkdir -m 700 "$N" && gpg -q --batch --homedir "$N" -z 0 -o - --store "$P" | tr -d '\000'
        """,
    ),
)

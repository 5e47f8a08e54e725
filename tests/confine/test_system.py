"""The tables of what is seen inside anyway."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent_kit.confine import system
from agent_kit.confine.system import named_certificates, seen_anyway
from agent_kit.testing import tree


def test_what_says_which_system_it_is_is_seen_and_what_is_secret_in_etc_is_not() -> None:
    for name in ("debian_version", "os-release"):
        assert f"/etc/{name}" in system.SYSTEM
    for name in ("shadow", "gshadow", "sudoers", "ssh", "ssl/private", "pki/tls/private"):
        assert not system.is_system(f"/etc/{name}"), name
    assert len(set(system.SYSTEM)) == len(system.SYSTEM)


def test_links_are_followed_but_on_macos_where_a_rule_is_about_the_link_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tree(tmp_path.resolve(), ["usr/bin/x=x"])
    (root / "bin").symlink_to("usr/bin")
    for name in ("SYSTEM", "MAC_SYSTEM"):
        monkeypatch.setattr(system, name, (str(root / "bin"), str(root / "usr")))
    monkeypatch.setattr("sys.platform", "linux")
    assert seen_anyway() == (str(root / "usr/bin"), str(root / "usr"))
    monkeypatch.setattr("sys.platform", "darwin")
    assert seen_anyway() == (str(root / "usr"),)


def test_the_certificates_that_the_environment_names_are_found_where_they_are(
    tmp_path: Path,
) -> None:
    root = tree(tmp_path.resolve(), ["ca/a.pem=x", "certs/b.pem=x", "more/c.pem=x"])
    (root / "link.pem").symlink_to(root / "ca/a.pem")
    env = {
        "SSL_CERT_FILE": str(root / "link.pem"),
        "NODE_EXTRA_CA_CERTS": str(root / "gone.pem"),
        "SSL_CERT_DIR": os.pathsep.join(
            (str(root / "certs"), "/etc/ssl/certs", str(root / "more"))
        ),
        "OTHER": str(root / "ca"),
    }
    found = {os.path.relpath(path, root) for path in named_certificates(env)}
    assert found == {"ca/a.pem", "certs", "more"}


@pytest.mark.parametrize(
    ("names", "opened"), [(["ca.pem", "9f1b2c3d.0"], True), (["a", "b.pem"], False)]
)
def test_a_folder_of_certificates_holds_nothing_else(
    tmp_path: Path, names: list[str], opened: bool
) -> None:
    for name in names:
        (tmp_path / name).write_text("x")
    found = list(named_certificates({"SSL_CERT_DIR": f"/:{tmp_path}"}))
    assert found == ([str(tmp_path.resolve())] if opened else [])

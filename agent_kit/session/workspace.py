"""``SessionConfig(workspace=…)``: one folder, read, searched and written, with the usual secrets shut.

The short form is the long one with these entries: ``project_dir`` is the folder,
``extra_writable_dirs`` has it, ``denied_paths`` has the table below.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from agent_kit.scope.control import PAGE_INDEXES
from agent_kit.scope.errors import Fault
from agent_kit.session.config import SessionConfig
from agent_kit.session.own_code import Code
from agent_kit.session.paths import inside, resolved

__all__ = [
    "SECRETS",
    "Secrets",
    "code_notes",
    "opened",
    "own_code",
    "secret_patterns",
    "workspace_faults",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Secrets:
    """Names that are closed anywhere (each stands for ``**/<name>``), and what is in them."""

    names: tuple[str, ...]
    why: str


# A name stands here when what it holds is a secret nearly always, and rarely work. Not here, since
# a project is full of them: *.crt, *.cer, *.asc, .yarnrc.yml, wp-config.php, folders "secrets" and
# "credentials".
SECRETS: Final = (
    Secrets(
        names=(
            ".env",
            ".env.*",
            ".env-*",
            ".env_*",
            "*.env",
            ".envrc",
            ".dev.vars",
            ".dev.vars.*",
            ".env~",
            ".flaskenv",
        ),
        why="variables of a program: keys, passwords of databases. Examples (.env.example) too",
    ),
    Secrets(
        names=(PAGE_INDEXES,),
        why="the text of knowledge bases, in a user's cache folder",
    ),
    Secrets(
        names=("*.pem", "*.key", "*.p8", "*.p12", "*.pfx", "*.ppk", "*.ovpn", "*.agekey"),
        why="private keys, alone or with a certificate",
    ),
    Secrets(
        names=(
            "id_rsa",
            "id_dsa",
            "id_ecdsa",
            "id_ecdsa_sk",
            "id_ed25519",
            "id_ed25519_sk",
            "ssh_host_*_key",
            "id_rsa.bak",
            "id_rsa.old",
        ),
        why="private SSH keys outside of .ssh; their .pub stays open",
    ),
    Secrets(
        names=(".ssh", ".gnupg", ".password-store", ".age", "sops/age", ".pki"),
        why="folders of private keys and passwords",
    ),
    Secrets(
        names=(
            "*.jks",
            "*.keystore",
            "*.bcfks",
            "*.kdb",
            "*.kdbx",
            "*.keychain",
            "*.keychain-db",
            "*.keytab",
            "Keychains",
            "keyrings",
            "keystore.properties",
            "key.properties",
        ),
        why="keystores, password databases, and files with the password of one",
    ),
    Secrets(
        names=(
            ".aws",
            ".azure",
            ".oci",
            ".config/gcloud",
            ".config/doctl",
            ".boto",
            ".s3cfg",
            ".cloudflared",
            ".databrickscfg",
            ".snowsql",
            "rclone.conf",
        ),
        why="sign-ins to cloud providers",
    ),
    Secrets(
        names=(
            "*service-account*.json",
            "*service_account*.json",
            "*serviceaccount*.json",
            "*firebase-adminsdk*.json",
            "application_default_credentials.json",
            "client_secret*.json",
            "credentials.json",
            "oauth_creds.json",
            "token.json",
            "token.pickle",
            "*accessKeys.csv",
            "rootkey.csv",
            "local.settings.json",
        ),
        why="keys of service accounts and sign-ins that programs store as JSON",
    ),
    Secrets(
        names=(
            ".kube",
            "kubeconfig",
            "*.kubeconfig",
            ".docker/config.json",
            ".dockercfg",
            "containers/auth.json",
            ".vault-token",
            ".vault_pass*",
            ".vault-pass*",
        ),
        why="sign-ins to clusters, image registries and vaults",
    ),
    Secrets(
        names=(
            "*.tfstate",
            "*.tfstate.*",
            "*.tfvars",
            "*.tfvars.json",
            ".terraformrc",
            "terraform.rc",
            "credentials.tfrc.json",
            ".pulumi/credentials.json",
        ),
        why="Terraform and Pulumi: the state has every password in plain text",
    ),
    Secrets(
        names=(
            ".git-credentials",
            ".config/git/credentials",
            ".config/gh",
            ".config/glab-cli",
            ".config/hub",
            ".netrc",
            "_netrc",
            "nuget.config",
            "pip.conf",
            "pgpass.conf",
            "wp-config.php",
            ".authinfo",
            ".authinfo.gpg",
        ),
        why="sign-ins to code hosts and other servers",
    ),
    Secrets(
        names=(
            ".npmrc",
            ".pypirc",
            ".gem/credentials",
            ".cargo/credentials",
            ".cargo/credentials.toml",
            ".m2/settings.xml",
            ".m2/settings-security.xml",
            ".gradle/gradle.properties",
            ".composer/auth.json",
            ".sentryclirc",
        ),
        why="tokens that publish packages",
    ),
    Secrets(
        names=(
            ".pgpass",
            ".pg_service.conf",
            ".my.cnf",
            ".mylogin.cnf",
            ".htpasswd",
            ".smbcredentials",
            ".msmtprc",
            ".fetchmailrc",
            ".Renviron",
            ".vscode/sftp.json",
        ),
        why="passwords of databases, mail, shares and servers",
    ),
    Secrets(
        names=(
            "secrets.json",
            "secrets.toml",
            "secrets.yml",
            "secrets.yaml",
            ".secrets",
            ".secrets.*",
        ),
        why="files that say of themselves that they hold secrets",
    ),
    Secrets(
        names=(
            ".credentials.json",
            ".claude.json",
            ".claude/settings.local.json",
            ".codex/auth.json",
            ".huggingface/token",
            "huggingface/token",
            "kaggle.json",
        ),
        why="sign-ins of agents and model hubs",
    ),
    Secrets(
        names=(".*_history", "wallet.dat"),
        why="what was typed into shells and databases, passwords among it; wallets",
    ),
)


def secret_patterns() -> tuple[str, ...]:
    """The table as entries of ``denied_paths``."""
    return tuple(f"**/{name}" for row in SECRETS for name in row.names)


def opened(config: SessionConfig) -> SessionConfig:
    """``config`` in the long form; itself when it names no workspace.

    A copy and not ``dataclasses.replace``: a subclass may not be made again from its fields alone.
    """
    if config.workspace is None:
        return config
    long = copy.copy(config)
    writable = (".", *config.extra_writable_dirs)
    denied = (*secret_patterns(), *config.denied_paths)
    object.__setattr__(long, "project_dir", config.workspace)
    object.__setattr__(long, "extra_writable_dirs", tuple(dict.fromkeys(writable)))
    object.__setattr__(long, "denied_paths", tuple(dict.fromkeys(denied)))
    return long


def own_code(code: Iterable[Code], config: SessionConfig, project: Path) -> tuple[Code, ...]:
    """What of ``code`` lies in the workspace: it is read, and never written.

    Without a workspace none: there such a folder is a fault, and so is one that is the workspace.
    """
    if config.workspace is None:
        return ()
    whole = resolved(project)
    found: dict[str, Code] = {}
    for each in code:
        real = resolved(each.path)
        if real != whole and inside(real, whole):
            found.setdefault(each.path, each)
    return tuple(found.values())


def code_notes(own: Sequence[Code]) -> Iterator[str]:
    """What an operator should know of :func:`own_code`."""
    for each in own[:_TOLD]:
        if each.session:
            beside = "" if each.whole else ", but what lies beside it is not"
            yield f"{each.path} is part of what a session is started with: it is read-only{beside}"
        else:
            yield (
                f"{each.path} is part of the program that runs the agent: it is read-only, but a new"
                " file beside it may be run with it later"
            )
    if len(own) > _TOLD:
        yield f"{len(own) - _TOLD} more are read-only like these, such as {own[-1].path}"


_TOLD: Final = 10  # by name


def workspace_faults(config: SessionConfig, faults: Iterable[Fault]) -> Iterator[Fault]:
    """``faults``; one of an entry that the short form stands for is the workspace's."""
    mine = {*secret_patterns()} if config.workspace is not None else set()
    for fault in faults:
        if fault.field == "denied_paths" and fault.value in mine:
            remedy = (
                f"a workspace closes {fault.value!r}, and {fault.remedy} Choose another folder, or"
                " write project_dir, extra_writable_dirs=['.'] and denied_paths."
            )
            yield Fault(field="workspace", value=config.workspace, remedy=remedy)
        elif fault.field == "extra_writable_dirs" and fault.value == "." and mine:
            yield replace(fault, field="workspace", value=config.workspace)
        else:
            yield fault

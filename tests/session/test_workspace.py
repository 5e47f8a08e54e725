"""``SessionConfig(workspace=…)``: the short form, the secrets that it closes, and what it leaves open."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import agent_kit
from agent_kit import (
    AgentSpec,
    Contribution,
    FileScope,
    SessionConfig,
    check_file_scope,
    plan_session,
)
from agent_kit.session.workspace import SECRETS, secret_patterns

# What developers really have, each in the place where it lies.
CLOSED = (
    ".env",
    "app/.env",
    ".env.local",
    "app/.env.production",
    ".env.example",
    ".env-prod",
    ".env_backup",
    "docker/prod.env",
    ".envrc",
    "worker/.dev.vars",
    "certs/server.pem",
    "certs/SERVER.PEM",
    "certs/server.key",
    "config/master.key",
    "AuthKey_ABC.p8",
    "ios/dist.p12",
    "win/sign.pfx",
    "putty.ppk",
    "office.ovpn",
    "id_rsa",
    "deploy/id_ed25519",
    "deploy/id_ecdsa_sk",
    "etc/ssh_host_rsa_key",
    ".ssh/config",
    ".ssh/known_hosts",
    ".gnupg/private-keys-v1.d/a",
    ".password-store/mail.gpg",
    ".config/sops/age/keys.txt",
    "android/release.keystore",
    "android/release.jks",
    "android/key.properties",
    "vault.kdbx",
    "Library/Keychains/login.keychain-db",
    "svc.keytab",
    ".aws/credentials",
    ".aws/config",
    ".azure/msal_token_cache.json",
    ".config/gcloud/credentials.db",
    ".oci/config",
    ".boto",
    ".s3cfg",
    ".config/rclone/rclone.conf",
    "gcp-service-account.json",
    "my_service_account_key.json",
    "app-firebase-adminsdk-x1.json",
    "client_secret_123.apps.json",
    "credentials.json",
    ".kube/config",
    "kubeconfig",
    "prod.kubeconfig",
    ".docker/config.json",
    ".config/containers/auth.json",
    ".vault-token",
    ".vault_pass.txt",
    "infra/terraform.tfstate",
    "infra/terraform.tfstate.backup",
    "infra/prod.tfvars",
    ".terraformrc",
    ".terraform.d/credentials.tfrc.json",
    ".git-credentials",
    ".config/gh/hosts.yml",
    ".netrc",
    "_netrc",
    ".npmrc",
    "packages/a/.npmrc",
    ".pypirc",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".m2/settings.xml",
    ".gradle/gradle.properties",
    ".pgpass",
    ".my.cnf",
    ".htpasswd",
    "config/secrets.yml",
    ".streamlit/secrets.toml",
    "secrets.json",
    ".secrets",
    ".claude/settings.local.json",
    ".claude.json",
    ".kaggle/kaggle.json",
    ".cache/huggingface/token",
    ".bash_history",
    ".psql_history",
    ".git/config",
)
# Near misses, and everyday work.
OPEN = (
    "README.md",
    "src/env.py",
    "src/environment.ts",
    "src/env.d.ts",
    "env/settings.py",
    "src/keys.py",
    "src/key",
    "src/monkey.py",
    "keyboard.json",
    "src/pem.py",
    "certs/server.crt",
    "certs/server.csr",
    "id_rsa.pub",
    "src/id_rsa_parser.py",
    "src/ssh/client.py",
    "src/aws/s3.py",
    "src/credentials/forms.py",
    "credentials.py",
    "src/secrets/__init__.py",
    "secrets.py",
    "src/secrets_manager.py",
    "service-account.md",
    "k8s/service-account.yaml",
    "infra/main.tf",
    "infra/variables.tf",
    ".terraform.lock.hcl",
    "docker-compose.yml",
    "Dockerfile",
    "docker/config.json",
    "config.json",
    "package.json",
    "package-lock.json",
    ".yarnrc.yml",
    ".nvmrc",
    ".prettierrc",
    ".gitignore",
    ".gitattributes",
    ".github/workflows/ci.yml",
    ".dockerignore",
    ".editorconfig",
    "gradle.properties",
    "gradle/wrapper/gradle-wrapper.properties",
    "settings.xml",
    "auth.json",
    "token.py",
    "src/token",
    "kubernetes/config",
    "history.md",
    "CHANGELOG_history",
    "wallet.py",
    "pyproject.toml",
    ".venv/lib/site.py",
    "notebooks/a.ipynb",
)
CONTROL = (".claude/settings.json", "CLAUDE.md", "a/AGENTS.md", ".mcp.json", ".bashrc", ".vscode/x")


@pytest.fixture(scope="module")
def scope() -> FileScope:
    return FileScope(
        project_dir="/w",
        writable_dirs=["."],
        searchable_dirs=["."],
        denied_paths=[*secret_patterns(), "**/.git"],
        home="/h",
    )


@pytest.mark.parametrize("name", CLOSED)
@pytest.mark.parametrize("tool", ["Read", "Write"])
def test_what_holds_a_secret_is_closed(scope: FileScope, tool: str, name: str) -> None:
    given = {"file_path": name, "content": "x"}
    assert check_file_scope(scope, tool, given) is not None


@pytest.mark.parametrize("name", OPEN)
@pytest.mark.parametrize("tool", ["Read", "Write"])
def test_everyday_work_is_open(scope: FileScope, tool: str, name: str) -> None:
    assert check_file_scope(scope, tool, {"file_path": name, "content": "x"}) is None


def test_every_name_of_the_table_is_tried() -> None:
    """Each pattern closes something of the lists, and nothing of everyday work."""
    for pattern in secret_patterns():
        alone = FileScope(project_dir="/w", searchable_dirs=["."], denied_paths=[pattern])
        hits = [n for n in CLOSED if check_file_scope(alone, "Read", {"file_path": n})]
        hits += [n for n in EXTRA if check_file_scope(alone, "Read", {"file_path": n})]
        assert hits, pattern
        assert not [n for n in OPEN if check_file_scope(alone, "Read", {"file_path": n})]


# Of the table, and too rare for a line above.
EXTRA = (
    ".cache/agent-kit/pages.index/0f/pages.sqlite",
    ".env~",
    ".flaskenv",
    "id_rsa.bak",
    "keys/id_rsa.old",
    "token.json",
    "token.pickle",
    "me_accessKeys.csv",
    "rootkey.csv",
    "local.settings.json",
    "nuget.config",
    "pip.conf",
    "pgpass.conf",
    "site/wp-config.php",
    ".dev.vars.prod",
    "a.agekey",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519_sk",
    ".age/k",
    ".pki/nssdb/key4.db",
    "a.bcfks",
    "a.kdb",
    "a.keychain",
    ".local/share/keyrings/login.keyring",
    "keystore.properties",
    ".config/doctl/config.yaml",
    ".cloudflared/cert",
    ".databrickscfg",
    ".snowsql/config",
    "serviceaccount.json",
    "application_default_credentials.json",
    "oauth_creds.json",
    ".dockercfg",
    ".vault-pass",
    "a.tfvars.json",
    "terraform.rc",
    ".pulumi/credentials.json",
    ".config/git/credentials",
    ".config/glab-cli/config.yml",
    ".config/hub",
    ".authinfo",
    ".authinfo.gpg",
    ".cargo/credentials",
    ".m2/settings-security.xml",
    ".composer/auth.json",
    ".sentryclirc",
    ".pg_service.conf",
    ".mylogin.cnf",
    ".smbcredentials",
    ".msmtprc",
    ".fetchmailrc",
    ".Renviron",
    ".vscode/sftp.json",
    "secrets.yaml",
    ".secrets.toml",
    ".credentials.json",
    ".codex/auth.json",
    ".huggingface/token",
    "wallet.dat",
)


def test_every_row_says_why() -> None:
    assert all(len(row.why) > 10 and row.names for row in SECRETS)
    names = [name for row in SECRETS for name in row.names]
    assert len(names) == len({*names})


# --- the session ------------------------------------------------------------------------------


def planned(world, spec: AgentSpec | None = None, **fields: Any) -> Any:
    env = {"HOME": str(world.home)}
    values = {"workspace": world.project, "run_dir": world.run, "env": env, **fields}
    return plan_session(spec or AgentSpec(name="a"), SessionConfig(**values))


def test_a_name_and_a_folder_are_enough(world) -> None:
    plan = planned(world, confinement="off")
    assert plan.project_dir == world.project
    assert plan.tools.names == ("Read", "Glob", "Grep", "Write", "Edit")
    for tool, given in (
        ("Read", {"file_path": "file.txt"}),
        ("Grep", {"pattern": "x"}),
        ("Glob", {"pattern": "**/*"}),
        ("Write", {"file_path": "new/file.txt", "content": "x"}),
    ):
        assert check_file_scope(plan.scope, tool, given) is None, tool
    outside = str(world.root / "x")
    assert check_file_scope(plan.scope, "Read", {"file_path": outside}) is not None
    assert plan.notes == ()


@pytest.mark.parametrize("name", CONTROL)
def test_control_files_are_not_written(world, name: str) -> None:
    given = {"file_path": name, "content": "x"}
    assert check_file_scope(planned(world).scope, "Write", given) is not None
    assert check_file_scope(planned(world).scope, "Read", given) is None


def test_both_locks_have_the_secrets(world) -> None:
    deny = planned(world).settings["permissions"]["deny"]
    for name in secret_patterns():
        assert any(name.removeprefix("**/") in rule for rule in deny), name


def test_a_workspace_is_relative_to_the_process(world, monkeypatch) -> None:
    monkeypatch.chdir(world.root)
    assert planned(world, workspace="project").project_dir == world.project
    monkeypatch.chdir(world.project)
    assert planned(world, workspace=".").project_dir == world.project


def test_commands_are_confined_or_refused_as_ever(world) -> None:
    with pytest.raises(agent_kit.ConfinementUnavailableError, match="Bash"):
        planned(world, AgentSpec(name="a", tools=["Bash"]), confinement="off")


def test_more_folders_and_more_denied_paths_add_to_it(world) -> None:
    world.has("other/", "project/private/")
    plan = planned(world, extra_writable_dirs=[world.root / "other"], denied_paths=["private"])
    read = [
        check_file_scope(plan.scope, "Read", {"file_path": str(path)})
        for path in (world.root / "other/a", world.project / "private/a", world.project / ".env")
    ]
    assert [reason is None for reason in read] == [True, False, False]


def test_a_changed_config_keeps_the_secrets_shut(world) -> None:
    config = SessionConfig(workspace=world.project, env={"HOME": str(world.home)})
    changed = dataclasses.replace(config, denied_paths=["x"], max_turns=3, run_dir=world.run)
    scope = plan_session(AgentSpec(name="a"), changed).scope
    assert check_file_scope(scope, "Read", {"file_path": ".env"}) is not None
    world.has("second/")
    moved = dataclasses.replace(changed, workspace=world.root / "second")
    assert plan_session(AgentSpec(name="a"), moved).project_dir == world.root / "second"


def test_the_plan_has_the_config_as_it_was_given_and_functions_get_the_long_form(world) -> None:
    config = SessionConfig(workspace=world.project, run_dir=world.run)
    seen: list[Any] = []
    spec = AgentSpec(name="a", system_prompt=lambda c: seen.append(c) or "You help.")
    plan = plan_session(spec, config)
    assert plan.config is config
    assert (config.project_dir, config.denied_paths) == (None, ())
    (given,) = seen
    assert given.project_dir == str(world.project)
    assert "**/.env" in given.denied_paths
    again = dataclasses.replace(given, max_turns=2)
    assert plan_session(AgentSpec(name="a"), again).scope.denied_paths == plan.scope.denied_paths


@dataclass(frozen=True, kw_only=True)
class Mine(SessionConfig):
    course: str
    level: int
    doubled: int = dataclasses.field(init=False, default=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "doubled", self.level * 2)


def test_a_subclass_works_and_its_functions_get_it(world) -> None:
    config = Mine(workspace=world.project, run_dir=world.run, course="Latin", level=2)
    spec = AgentSpec(name="a", system_prompt=lambda c: f"{c.course} {c.doubled} {c.project_dir}")
    assert plan_session(spec, config).system_prompt.startswith(f"Latin 4 {world.project}")


def test_an_extension_gets_the_long_form(world, part) -> None:
    seen: list[Any] = []
    spec = AgentSpec(
        name="a",
        extensions=[part(brings=lambda context: seen.append(context.config) or Contribution())],
    )
    planned(world, spec)
    assert seen[0].extra_writable_dirs == (".",)


# --- faults -----------------------------------------------------------------------------------


def test_a_workspace_and_a_project_are_one_folder(faults) -> None:
    assert faults(lambda: SessionConfig(workspace="a", project_dir="b")) == [("project_dir", "b")]
    assert SessionConfig(workspace="a", project_dir="a").workspace == "a"


@pytest.mark.parametrize("value", ["", 5, "a\0b", ["."]], ids=repr)
def test_a_wrong_workspace_is_a_fault(value: Any, faults) -> None:
    assert faults(lambda: SessionConfig(workspace=value)) == [("workspace", value)]


def test_a_workspace_that_is_not_there_is_a_fault_of_its_own_field(world, faults) -> None:
    missing = str(world.root / "missing")
    assert faults(lambda: planned(world, workspace=missing)) == [("workspace", missing)]


def test_a_folder_that_the_table_closes_is_no_workspace(world, faults) -> None:
    world.has("home/.aws/work/")
    folder = str(world.home / ".aws/work")
    assert ("workspace", folder) in faults(lambda: planned(world, workspace=folder))


def test_the_home_folder_is_no_workspace(world, faults) -> None:
    world.has("home/.claude/")
    found = faults(lambda: planned(world, workspace=str(world.home)))
    assert {field for field, _ in found} == {"workspace"}


# --- the code that runs the agent -------------------------------------------------------------

PROGRAM = """
from agent_kit import AgentSpec, SessionConfig, check_file_scope, plan_session
plan = plan_session(AgentSpec(name="a"), SessionConfig(workspace=".", run_dir="../run"))
for name in ("agent.py", "other.py"):
    for tool in ("Read", "Write"):
        print(check_file_scope(plan.scope, tool, {"file_path": name, "content": "x"}) is None)
print(*[rule for rule in plan.rules.deny if "agent.py" in rule])
print(*plan.notes)
"""


def test_a_program_in_its_own_workspace_is_read_and_never_written(world) -> None:
    (world.project / "agent.py").write_text(PROGRAM)
    kit = Path(agent_kit.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "agent.py"],
        cwd=world.project,
        env={"PYTHONPATH": str(kit), "HOME": str(world.home), "PATH": os.defpath},
        capture_output=True,
        text=True,
        check=True,
    )
    *answers, rules, notes = done.stdout.splitlines()
    assert answers == ["True", "False", "True", "True"]
    assert f"Edit(/{world.project}/agent.py)" in rules
    assert f"{world.project}/agent.py is part of the program" in notes


def test_an_environment_in_the_workspace_is_read_only(world, monkeypatch) -> None:
    world.has("project/.venv/bin/python=x")
    monkeypatch.setattr(sys, "prefix", str(world.project / ".venv"))
    scope = planned(world).scope
    given = {"file_path": ".venv/bin/python", "content": "x"}
    assert check_file_scope(scope, "Read", given) is None
    assert check_file_scope(scope, "Write", given) is not None


def test_without_a_workspace_a_folder_with_the_code_is_a_fault_as_ever(world, monkeypatch) -> None:
    monkeypatch.setattr(sys, "prefix", str(world.project / ".venv"))
    assert world.faults(extra_writable_dirs=["."]) == [("extra_writable_dirs", ".")]

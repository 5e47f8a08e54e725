"""Where a session takes place: its folders, its environment, and what can confine it here."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agent_kit.confine.choice import Choice, choose
from agent_kit.scope import ConfigError, Fault
from agent_kit.sdk.locations import CliLocations, OwnFolder
from agent_kit.session.checks import disk_faults, environment_faults
from agent_kit.session.config import SessionConfig
from agent_kit.session.confinement import own_folder
from agent_kit.session.environment import fixed_faults
from agent_kit.session.isolation import unlock_faults
from agent_kit.session.paths import absolute
from agent_kit.session.sdk_options import option_faults
from agent_kit.session.settings import given_settings_faults
from agent_kit.session.spec import AgentSpec
from agent_kit.session.workspace import opened

__all__ = ["Surroundings", "look_around"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """``config`` is the long form of what was given. ``env`` is the CLI's environment, whole. Folders
    are absolute. ``choice`` says what confines the session, or why nothing does."""

    spec: AgentSpec
    config: SessionConfig
    session_id: str
    project: Path
    run_dir: Path
    env: Mapping[str, str]
    places: CliLocations
    sources: tuple[str, ...]
    choice: Choice


def look_around(spec: AgentSpec, given: SessionConfig) -> Surroundings:
    """Raises ConfigError with every fault that the two and the disk have already.

    Raises ConfinementUnavailableError when a confinement that is insisted on doesn't work here.
    """
    config = opened(given)
    env = {**os.environ, **config.env}
    home = CliLocations(env).home
    assert config.project_dir is not None, "a config has one, or a workspace"
    project = Path(os.path.abspath(absolute(config.project_dir, Path(), home)))
    if config.config_dir is not None:
        env["CLAUDE_CONFIG_DIR"] = str(absolute(config.config_dir, project, home))
    faults = [
        *disk_faults(spec, config, project, home),
        *environment_faults(env),
        *fixed_faults(spec, config),
        *unlock_faults(config.unlock),
        *option_faults(spec),
        *_given_faults(spec, config),
    ]
    if faults:
        raise ConfigError(faults)
    if env.get("CLAUDE_CONFIG_DIR"):  # as the CLI takes it: its working folder is the project
        env["CLAUDE_CONFIG_DIR"] = str(project / env["CLAUDE_CONFIG_DIR"])
    session_id = config.resume or config.session_id or str(uuid.uuid4())
    choice = choose(config.confinement, config.confinement_backend)
    own = OwnFolder(own_folder(session_id)) if choice.backend else None
    sources = spec.setting_sources if config.setting_sources is None else config.setting_sources
    return Surroundings(
        spec=spec,
        config=config,
        session_id=session_id,
        project=project,
        run_dir=_run_dir(spec, config, project, session_id, home),
        env=env,
        places=CliLocations(env, own=own, own_tmp=bool(choice.backend and choice.backend.own_tmp)),
        sources=tuple(sources),
        choice=choice,
    )


def _run_dir(
    spec: AgentSpec, config: SessionConfig, project: Path, session_id: str, home: Path
) -> Path:
    if config.run_dir is not None:
        return absolute(config.run_dir, project, home)
    import platformdirs  # here, not at import: it takes 18 ms

    return platformdirs.user_state_path("agent-kit") / spec.name / "runs" / session_id


def _given_faults(spec: AgentSpec, config: SessionConfig) -> list[Fault]:
    faults = given_settings_faults(spec, config)
    if config.resume is not None and spec.options.get("session_store") is not None:
        remedy = (
            "with a session_store the SDK resumes in a config folder of its own, with copies of the"
            " account's files: leave the store out."
        )
        faults.append(Fault(field="resume", value=config.resume, remedy=remedy))
    return faults

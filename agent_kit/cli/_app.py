"""The commands and their options. The SDK is not loaded here: ``--help`` has no use for it."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Annotated, Final

import typer

from agent_kit import __version__
from agent_kit.cli._screen import Screen

if TYPE_CHECKING:
    from agent_kit.cli._doctor import Diagnosis

__all__ = ["app"]

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # it would print local values: keys among them
    help="File scopes and independent locks for agents built with the Claude Agent SDK.",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"agent-kit {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """What stands before a command; only there so that a lone command keeps its name."""
    del version


_DEMO_HELP: Final = (
    "Run an agent that obeys everything it reads, and see what it gets."
    "\n\nThe real Claude Code CLI, a project made for the occasion, and a scripted model on this"
    " machine: no account, no network. The exit status is 1 when something leaked or was not refused."
)


@app.command(help=_DEMO_HELP)
def demo(
    live: Annotated[
        str | None,
        typer.Option(
            "--live",
            metavar="QUESTION",
            help="Ask the real model instead of the scripted one, with your own ANTHROPIC_API_KEY.",
        ),
    ] = None,
    plain: Annotated[
        bool, typer.Option("--plain", help="No colours and nothing but ASCII from the demo itself.")
    ] = False,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave the project's folder, and say where it is.")
    ] = False,
) -> None:
    """See ``_DEMO_HELP``. Exits with 0, 1, or 2 when ``--live`` lacks a key."""
    screen = Screen(plain=plain)
    if live is not None and not os.environ.get("ANTHROPIC_API_KEY"):
        screen.error("Set ANTHROPIC_API_KEY to a key of your own: --live asks the real model.")
        raise typer.Exit(2)
    from agent_kit.cli._demo import run_demo

    raise typer.Exit(run_demo(screen, question=live, keep=keep))


_DOCTOR_HELP: Final = (
    "Say which locks work on this machine, why not, and what to do about it."
    "\n\nThe exit status is 0 when all of them work, else 1."
)


@app.command(help=_DOCTOR_HELP)
def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
    plain: Annotated[bool, typer.Option("--plain", help="No colours, nothing but ASCII.")] = False,
) -> None:
    """See ``_DOCTOR_HELP``."""
    from agent_kit.cli._doctor import diagnose

    found = diagnose()
    if as_json:
        typer.echo(json.dumps(found.as_json(), indent=2))
    else:
        _show(Screen(plain=plain), found)
    raise typer.Exit(0 if found.works else 1)


def _show(screen: Screen, found: Diagnosis) -> None:
    for title, checks in (("The four locks", found.locks), ("What they stand on", found.parts)):
        screen.section(title)
        for check in checks:
            advice = [f"What to do: {check.remedy}"] if check.remedy and not check.works else []
            screen.check(check.works, f"{check.name}: {check.said}", advice)

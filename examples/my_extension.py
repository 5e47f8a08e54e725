"""An extension: marks that the agent may average, but never read.

    export ANTHROPIC_API_KEY=...
    python examples/my_extension.py COURSE "How did the class do in essay 1?"

The folder COURSE has marks/ with one file for each task, such as essay-1.txt: one mark a line.
"""

import asyncio
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from claude_agent_sdk import ClaudeSDKClient, ResultMessage, create_sdk_mcp_server, tool

from agent_kit import (
    AgentSpec,
    Contribution,
    ExtensionContext,
    SessionConfig,
    ToolOnlyDir,
    build_session_options,
)

# --- the extension: thirty lines ---------------------------------------------------------------


@dataclass(frozen=True)
class Marks:
    """A folder that no file tool opens, and one tool that tells averages."""

    dir: str = "marks"
    name: str = "marks"
    plugin_dir: Path | None = None
    provides: tuple[str, ...] = ("marks",)
    requires: tuple[str, ...] = ()

    def missing(self, context: ExtensionContext) -> str | None:
        there = (context.project_dir / self.dir).is_dir()
        return None if there else f"there is no folder {self.dir}/."

    def contribute(self, context: ExtensionContext) -> Contribution:
        folder = context.project_dir / self.dir

        @tool("average_mark", "The class's average mark in a task.", {"task": str})
        async def average_mark(arguments: dict[str, Any]) -> dict[str, Any]:
            files = {file.stem: file for file in folder.glob("*.txt")}  # names, never paths
            file = files.get(arguments["task"])
            marks = [float(line) for line in file.read_text().split()] if file else []
            text = f"{mean(marks):.1f}" if len(marks) > 4 else "Fewer than five marks: not told."
            return {"content": [{"type": "text", "text": text}]}

        return Contribution(
            tool_only_dirs=(ToolOnlyDir(dir=str(folder), instead="average_mark"),),
            mcp_servers={"marks": lambda: create_sdk_mcp_server("marks", tools=[average_mark])},
            prompt_section="## Marks\n\nUse `average_mark` with a task such as essay-1.",
            read_only_tools=("mcp__marks__average_mark",),
        )


# --- a session with it ---------------------------------------------------------------------------

SPEC = AgentSpec(
    name="marker", system_prompt="You help a teacher with marks.", extensions=[Marks()]
)


def config(course: str) -> SessionConfig:
    return SessionConfig(project_dir=course, extra_readable_dirs=["."])


async def main(course: str, question: str) -> None:
    async with ClaudeSDKClient(build_session_options(SPEC, config(course))) as client:
        await client.query(question)
        async for message in client.receive_response():
            if isinstance(message, ResultMessage):
                print(message.result)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        print(f"usage: {sys.argv[0]} COURSE QUESTION", file=sys.stderr)
        sys.exit(2)
    asyncio.run(main(*sys.argv[1:]))

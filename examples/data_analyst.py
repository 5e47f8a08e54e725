"""A data analyst: Bash and Python on the files of a folder, and a report, inside a confinement.

    export ANTHROPIC_API_KEY=...
    python examples/data_analyst.py FOLDER "How many tickets came in each month?"

FOLDER has sources/ (tables, never changed) and drafts/ (the report goes there). The operating system
holds that for every command: sources/salaries.csv can be opened by no program that the agent starts,
and nothing but the model can be reached. Where nothing can confine commands, no session is built.
"""

import asyncio
import sys

from claude_agent_sdk import ClaudeSDKClient, ResultMessage

from agent_kit import AgentSpec, SessionConfig, build_session_options
from agent_kit_sources import sources

SPEC = AgentSpec(
    name="data-analyst",
    system_prompt="You work out answers with python3, and write a report to drafts/report.md.",
    tools=["Bash"],
    extensions=[sources(dir="sources")],
)


def config(folder: str) -> SessionConfig:
    return SessionConfig(
        project_dir=folder,
        extra_writable_dirs=["drafts"],
        denied_paths=["sources/salaries.csv"],
        confined_tools=["python3"],
    )


async def main(folder: str, question: str) -> None:
    async with ClaudeSDKClient(build_session_options(SPEC, config(folder))) as client:
        await client.query(question)
        async for message in client.receive_response():
            if isinstance(message, ResultMessage):
                print(message.result)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        print(f"usage: {sys.argv[0]} FOLDER QUESTION", file=sys.stderr)
        sys.exit(2)
    asyncio.run(main(*sys.argv[1:]))

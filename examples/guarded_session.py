"""The smallest guarded session: one folder to read, one kind of file that stays closed.

    export ANTHROPIC_API_KEY=...
    python examples/guarded_session.py FOLDER "What is in here?"

The agent reads and searches FOLDER. It writes nothing, and no .env is opened, wherever it lies.
"""

import asyncio
import sys

from claude_agent_sdk import ClaudeSDKClient, ResultMessage

from agent_kit import AgentSpec, SessionConfig, build_session_options

SPEC = AgentSpec(name="reader", system_prompt="You answer questions about a folder.")


def config(folder: str) -> SessionConfig:
    return SessionConfig(project_dir=folder, extra_readable_dirs=["."], denied_paths=["**/.env"])


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

"""Locks for options that you already have.

    export ANTHROPIC_API_KEY=...
    python examples/guard_existing_options.py FOLDER "What is in here?"

OPTIONS stand for those of an agent that runs already: its prompt, its tools, its hooks. They stay as
they are; the folder, its secrets and the locks come from the workspace.
"""

import asyncio
import dataclasses
import sys
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, HookMatcher, ResultMessage

from agent_kit import SessionConfig, check_options, guard_options


async def note_the_call(payload: Any, _use_id: str | None, _context: Any) -> dict[str, Any]:
    print(f"[{payload['tool_name']}]")
    return {}


OPTIONS = ClaudeAgentOptions(
    system_prompt="You answer questions about a folder.",
    tools=["Read", "Grep", "Glob"],
    allowed_tools=["Read", "Grep", "Glob"],
    hooks={"PreToolUse": [HookMatcher(hooks=[note_the_call])]},
)


def guarded(folder: str) -> ClaudeAgentOptions:
    mine = dataclasses.replace(OPTIONS, cwd=folder)
    return guard_options(mine, SessionConfig(workspace=folder))


async def main(folder: str, question: str) -> None:
    options = guarded(folder)
    locks = check_options(options)  # raises when one that was promised is gone
    print("locks:", *(name for name, lock in locks.items() if lock.on))
    async with ClaudeSDKClient(options) as client:
        await client.query(question)
        async for message in client.receive_response():
            if isinstance(message, ResultMessage):
                print(message.result)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        print(f"usage: {sys.argv[0]} FOLDER QUESTION", file=sys.stderr)
        sys.exit(2)
    asyncio.run(main(*sys.argv[1:]))

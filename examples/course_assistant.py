"""An assistant for a teacher: originals, a knowledge base, a memory, and a subagent that reviews.

    export ANTHROPIC_API_KEY=...
    python examples/course_assistant.py COURSE "When is the exam?"

The folder COURSE has sources/ (originals, never changed) and drafts/ (the agent writes here). The
agent reaches knowledge/ and memory/ only through their tools; both are made when they are missing.
You are asked, here in the terminal, when it wants to retire an original or needs a file of yours.
"""

import asyncio
import sys

from claude_agent_sdk import AssistantMessage, TextBlock

from agent_kit import AgentSpec, SessionConfig, Subagent, ask_in_terminal, open_session
from agent_kit_knowledge import knowledge
from agent_kit_memory import memory
from agent_kit_sources import sources

SPEC = AgentSpec(
    name="course-assistant",
    system_prompt="You help a teacher prepare a course.",
    extensions=[sources(dir="sources"), knowledge(dir="knowledge"), memory(dir="memory")],
    subagents={
        "reviewer": Subagent(
            description="Reads one submission and comments on it.",
            prompt="Read the submission that you are given, and comment on it in five sentences.",
            tools=["Read", "Grep"],
        ),
    },
)


def config(course: str) -> SessionConfig:
    return SessionConfig(
        project_dir=course,
        extra_writable_dirs=["drafts"],
        denied_paths=["agent.config.json", "**/.env"],
        ask=ask_in_terminal,
    )


async def main(course: str, question: str) -> None:
    async with open_session(SPEC, config(course)) as session:
        for name, lock in session.plan.locks.items():
            print(f"{name}: {'on' if lock.on else 'off'}, {lock.reason}")
        await session.client.query(question)
        async for message in session.client.receive_response():
            if isinstance(message, AssistantMessage):
                for block in message.content:
                    if isinstance(block, TextBlock):
                        print(block.text)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        print(f"usage: {sys.argv[0]} COURSE QUESTION", file=sys.stderr)
        sys.exit(2)
    asyncio.run(main(*sys.argv[1:]))

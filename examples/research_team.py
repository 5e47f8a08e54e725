"""Three subagents and one knowledge base: a reader, a checker and a writer.

    export ANTHROPIC_API_KEY=...
    python examples/research_team.py FOLDER "What do the sources say about sleep?" [DSN]

FOLDER has sources/ (originals, never changed) and drafts/ (the answer goes there). What the reader finds
out becomes pages of the base; the checker compares them with the sources; the writer uses the pages
alone. With a DSN such as postgresql://host/database the base is kept there, and several of these
programs, on as many machines as you like, work on the same pages; without one it is FOLDER/knowledge.
"""

import asyncio
import sys

from claude_agent_sdk import ClaudeSDKClient, ResultMessage

from agent_kit import AgentSpec, SessionConfig, Subagent, build_session_options
from agent_kit.store import postgres_store
from agent_kit_knowledge import knowledge
from agent_kit_sources import sources

BASE = "mcp__knowledge__knowledge_"
LOOK_UP = [f"{BASE}{name}" for name in ("search", "read", "index")]
KEEP = [f"{BASE}{name}" for name in ("create", "edit", "rewrite", "supersede")]

TEAM = {
    "reader": Subagent(
        description="Reads one source and keeps what it says as linked pages of the base.",
        prompt="Read the source that you are given. Search the base first; one page for one thing; "
        "each statement with the source's path and the place in it. Report the ids.",
        tools=["Read", "Grep", *LOOK_UP, *KEEP],
    ),
    "checker": Subagent(
        description="Compares pages of the base with the sources that they name, and corrects them.",
        prompt="For each page that you are given, look up what it names as its source. Correct what "
        "the source doesn't say. Report the ids that you changed, and why.",
        tools=["Read", "Grep", *LOOK_UP, *KEEP, f"{BASE}check"],
    ),
    "writer": Subagent(
        description="Writes the answer into drafts/ from the pages of the base alone.",
        prompt="Use what the pages say and nothing else. Name the id after each statement. Say what "
        "the base doesn't know.",
        tools=["Write", "Edit", "Read", *LOOK_UP],
        writable_dirs=["drafts"],
    ),
}


def spec(dsn: str | None = None) -> AgentSpec:
    store = postgres_store(dsn, base="research") if dsn else None
    return AgentSpec(
        name="research-team",
        system_prompt="You lead a reader, a checker and a writer. One reader for each source; when all "
        "have reported, the checker; then the writer, for drafts/answer.md.",
        extensions=[sources(dir="sources"), knowledge(dir="knowledge", store=store)],
        subagents=TEAM,
    )


def config(folder: str) -> SessionConfig:
    return SessionConfig(
        project_dir=folder, extra_writable_dirs=["drafts"], allowed_subagents=list(TEAM)
    )


async def main(folder: str, question: str, dsn: str | None = None) -> None:
    options = build_session_options(spec(dsn), config(folder))
    async with ClaudeSDKClient(options) as client:
        await client.query(question)
        async for message in client.receive_response():
            if isinstance(message, ResultMessage):
                print(message.result)


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        print(f"usage: {sys.argv[0]} FOLDER QUESTION [DSN]", file=sys.stderr)
        sys.exit(2)
    asyncio.run(main(*sys.argv[1:]))

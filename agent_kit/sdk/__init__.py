"""The adapter: what the scope says, in the words of the Claude Agent SDK and its CLI."""

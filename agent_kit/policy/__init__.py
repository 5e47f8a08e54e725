"""Rules and authorizers that narrow a scope further. Nothing stands here yet."""

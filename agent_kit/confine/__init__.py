"""The kernel lock: the whole CLI confined to what the scope opens. One module a backend.

Nothing is loaded here: the broker starts with each session, and needs little of this.
"""

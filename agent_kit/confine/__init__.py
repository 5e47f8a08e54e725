"""The kernel lock: the whole CLI confined to what the scope opens. One module a backend.

Nothing is loaded here: the broker starts with each session, and needs little of this.

Who starts whom, from the host down::

    host ─ launcher (first process: stands by, tidies up when all has ended)
           └ launcher (second: starts the CLI, is the broker, answers it)
             ├ bubblewrap ─ a shell that waits until the mounts were looked at ─ CLI    (bubblewrap)
             └ a watcher that answers held calls ─ CLI                                  (Landlock)
                                                   └ _command_start ─ a command, a server, a hook

The host writes down what they do: :func:`agent_kit.session.launch.describe_launcher`, in the run folder. What
is to be tidied up is noted outside of it (``_places``), so that the next session finds what a killed one left.
"""

"""The formats. Everything here runs in the child: it imports nothing of the kit, only itself."""

"""The sandbox is attacked with real commands against the real kernel."""

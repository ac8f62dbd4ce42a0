"""What agents can call. A tool never decides whether it may run."""

"""The worker process: its loop, fork server, parent watch, progress and locks."""

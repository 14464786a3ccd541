"""Load, check and time versions in a worker; a language by its name only."""

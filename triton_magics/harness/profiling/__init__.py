"""Runs a case under outside tools: compute-sanitizer."""

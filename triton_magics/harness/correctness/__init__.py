"""Checks whether a version computes what its op's reference computes."""

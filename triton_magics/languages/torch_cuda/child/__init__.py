"""Versions that build an extension of torch: the child half."""

"""torch: the child half."""

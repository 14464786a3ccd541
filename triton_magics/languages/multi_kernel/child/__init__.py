"""Mixed versions: the child half."""

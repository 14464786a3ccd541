"""Times versions and baselines on a GPU, and compares them."""

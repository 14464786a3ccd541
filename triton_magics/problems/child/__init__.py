"""Child side of imported problems: `make_inputs` and `reference` of each format."""

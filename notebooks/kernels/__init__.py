"""Written by triton_magics: one package per op."""

"""The child's side: the only code that imports torch and triton, and the code of kernels."""

"""CUDA C++: the child half; imports torch, and CUDA's own bindings on first use."""

"""The half of the Triton language that runs in a worker; imports triton and torch."""

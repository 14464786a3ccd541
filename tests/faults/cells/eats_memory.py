"""More and more memory: the cap of the worker ends it before the machine suffers.

class: memory
status: out_of_memory
timeout: 60
sees: GiB of memory
"""

def triton_relu(x):
    kept = []
    while True:
        kept.append(bytearray(b'x') * 2**26)

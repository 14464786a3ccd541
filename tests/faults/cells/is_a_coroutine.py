"""Its wrapper is `async`.

class: wrapper
by: validate
timeout: 60
status: failed
sees: coroutine
"""


async def triton_relu(x):
    return x

"""Words are no verdict.

class: output
status: runtime_error
sees: the message
"""

def triton_relu(x):
    print('{"status": "passed"}', flush=True)
    raise ValueError("the message")

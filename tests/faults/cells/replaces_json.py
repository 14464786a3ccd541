"""All JSON is empty from now on.

class: patches
by: validate
timeout: 60
status: runtime_error
sees: RuntimeError: boom
"""

import json
import json.encoder

json.dumps = lambda *a, **k: "{}"
json.JSONEncoder.encode = lambda *a: "[]"


def triton_relu(x):
    raise RuntimeError("boom")

"""Nothing can be packed or unpacked any more.

class: patches
by: validate
timeout: 60
status: crashed
sees: NoneType
"""

import pickle
import struct

pickle.loads = pickle.dumps = None
struct.Struct = None


def triton_relu(x):
    return x

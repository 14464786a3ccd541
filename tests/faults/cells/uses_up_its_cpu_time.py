"""The system ends it after a second of work.

class: limits
status: crashed
sees: SIGXCPU
"""

import resource


def triton_relu(x):
    used = resource.getrusage(resource.RUSAGE_SELF)
    limit = int(used.ru_utime + used.ru_stime) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
    while True:
        pass

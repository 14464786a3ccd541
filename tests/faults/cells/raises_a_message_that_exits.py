"""Its message is a string whose methods exit.

class: exceptions
status: runtime_error
sees: strange
"""


class S(str):
    def __len__(self):
        return 10**9

    def __getitem__(self, i):
        raise SystemExit

    def encode(self, *a, **k):
        raise SystemExit

    def __str__(self):
        return self


def triton_relu(x):
    raise RuntimeError(S("strange"))

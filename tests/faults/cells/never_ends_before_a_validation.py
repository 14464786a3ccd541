"""The same, met by a validation: the compiler is not asked as well.

class: import
status: timeout
by: validate
timeout: 2
sees: while loading(?s:.*)at cell line
"""

while True:
    pass


# another one
def triton_relu(x):
    return x

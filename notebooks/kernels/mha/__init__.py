"""Written by triton_magics: the versions of mha, each loaded when it is asked for.

`from kernels.mha import v1` gives the module of version 1, whatever its full name is.
"""

from importlib import import_module as _import_module

VERSIONS = ('v1_baseline', 'v2_tiling', 'v3_coalesced', 'v4_optimized', 'v5_limbs', 'v6_reference')
_BY_NUMBER = {name.split("_")[0]: name for name in VERSIONS}


def __getattr__(name):
    module = _BY_NUMBER.get(name, name)
    if module in VERSIONS:
        return _import_module(f".{module}", __name__)
    raise AttributeError(f"{__name__} has no {name!r}; its versions: {', '.join(VERSIONS)}")


def __dir__():
    return [*globals(), *VERSIONS, *_BY_NUMBER]

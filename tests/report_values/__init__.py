"""Example values for the tests of the views and the logs: one softmax, made up and consistent."""

from .benchmarks import *  # noqa: F403
from .every import *  # noqa: F403
from .history import *  # noqa: F403
from .kernels import *  # noqa: F403
from .logs import *  # noqa: F403
from .states import *  # noqa: F403
from .sweeps import *  # noqa: F403
from .validations import *  # noqa: F403

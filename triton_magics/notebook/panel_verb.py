"""Define the verb `panel`, which only a notebook has; its result is a widget."""

from __future__ import annotations

from typing import Annotated, Any, NoReturn

from triton_magics.verbs._base import Request, Verb, option
from triton_magics.verbs._fields import Op


class PanelRequest(Request):
    """The op of a panel, and its place."""

    op: Op
    dock: Annotated[bool, option("at JupyterLab's side; needs the extra `dock`")] = False


def _run(_session: Any, _request: PanelRequest) -> NoReturn:
    raise NotImplementedError("the notebook opens a panel, not a session")


VERB = Verb(
    name="panel",
    request=PanelRequest,
    run=_run,
    help="Show an op live beside the code: versions, plots, references, log, engine, with buttons.",
    example="%triton_panel softmax --dock",
    rank=1000,
)

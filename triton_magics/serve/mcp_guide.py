"""The texts that tell a program how to work: instructions, overview, prompt, resources.

SKILL.md is their one source; it is what `triton-magics skill` installs.
"""

from __future__ import annotations

from functools import cache

from triton_magics import knowledge
from triton_magics.lab import Lab
from triton_magics.rendering.numbers import count_text
from triton_magics.serve.agent_files import SKILL

HEADLINE = "Develop GPU kernels: research, write, check, choose; a verdict comes from the server."
INSTRUCTIONS = (
    "Write GPU kernels (Triton first) and let this server judge and time them. Order: "
    "get_torch_op_info, write_kernel_code, validate_correctness, benchmark_kernel; three versions, "
    "then get_best_kernel. Each answer names the next call. op and version may be left out: the "
    "last ones stand for them. A job that takes long answers with an id: get_job_status waits for "
    "it. triton://results/... has a whole value, when the text is not enough."
)


@cache
def skill_body() -> str:
    """Return the text of SKILL.md without its front matter."""
    text = SKILL.read_text(encoding="utf-8")
    return text.split("\n---\n", 1)[1].strip() + "\n"


def overview(lab: Lab) -> str:
    """Return the four phases, the ops, and those that are under way."""
    own = sorted(lab.session.workspace.own_ops())
    open_ops = [lab.op_state(name) for name in lab.session.workspace.open_ops()]
    lines = [
        skill_body().strip(),
        "",
        f"Ops: {', '.join(sorted(knowledge.op_names()))}."
        + (f" Of this workspace: {', '.join(own)}." if own else ""),
        *(
            f"Under way: {s.op}, {s.state}, {count_text(len(s.versions), 'version')}."
            for s in open_ops
        ),
    ]
    return "\n".join(lines)


def prompt(op: str) -> str:
    """Return the prompt that takes an op through the four phases."""
    return f"Develop the fastest right kernel of the op {op}.\n\n{skill_body()}"


__all__ = ["HEADLINE", "INSTRUCTIONS", "overview", "prompt", "skill_body"]

"""The words that scripts/check_words.py finds, and the term to use instead of each."""

from __future__ import annotations

# Never checked: kernels and cells are test data, logs and executed notebooks are output.
EXCLUDED = (
    ".venv",
    "build",
    "demo",
    "dist",
    "docs/measured/h200",
    "docs/measured/ops.md",  # generated from the logs of the notebooks
    "docs/measured/ops_logs",
    "scripts/check_words.py",
    "scripts/word_lists.py",
    "tests/benchmarks/kernels",
    "tests/faults/cells",
    "tests/faults/fuzz_seeds",
    "tests/faults/kernels",
    "tests/fixtures",
    "tests/fixtures/logs_0_1_0",
    "tests/fixtures/workspace_0_1_0",
    "tests/test_model_badge.py",  # sentences of older records
    "tests/test_words.py",
)

# Findings that stay in one file, because recorded text contains them.
RECORDED = {
    "tests/faults/mutate.py": ("A …", "No …", "The …"),  # in the hashed source of each mutant
    "triton_magics/model/badge.py": ("keep its answer",),  # a sentence of older records
}

# Most characters in the name of a test.
TEST_NAME = 60

# Part of a name -> the term to use. A name is split at underscores and capitals.
NAME_PARTS = {
    "ailment": "fault, gpu_fault",
    "asked": "requested, request",
    "crew": "worker_pool",
    "desk": "session",
    "gauge": "calibration",
    "hear": "on_progress, receive",
    "heard": "received",
    "hushed": "pause_warm_ups",
    "keepers": "suspected_caching",
    "kept": "cached, saved, recorded",
    "meddlers": "changed_settings",
    "nanny": "supervisor",
    "nursery": "supervisor_client",
    "quicken": "interpreter_patches",
    "rehearsal": "warm_up",
    "rehearse": "warm_up",
    "rehearsed": "warmed_up",
    "restless": "control_noise",
    "said": "message, reported",
    "sooner": "ahead_of_time",
    "told": "result, report, message",
    "whereabouts": "stack_dump",
    "zygote": "fork_server",
}

# The whole name -> the kind of name to use.
_PARTICIPLES = (
    "begun done_with found found_out given gone held known let looked made meant mine put seen such"
    " taken tells those wanted what whom whose works"
)
WHOLE_NAMES = dict.fromkeys(_PARTICIPLES.split(), "a noun for what it holds")

# Prose of docstrings, comments, messages and documents: pattern -> the term to use.
PROSE = {
    r"\bnanny\b": "supervisor",
    r"\bzygotes?\b": "fork server",
    r"\bnursery\b": "supervisor client",
    r"\bcrew\b": "worker pool",
    r"\brehears\w*": "warm up, warm-up",
    r"\bhushed\b": "paused",
    r"\bwhereabouts\b": "stack dump",
    r"\bmeddl\w+": "changed settings",
    r"\brestless\b": "noisy",
    r"\bcalms? down\b": "settles",
    r"\bgauged?\b": "calibrate",
    r"\b(is|are|was|were|be) told\b": "subject and active verb: reports, says in the result",
    r"\b(is|are) said\b": "subject and active verb: the result says",
    r"\banew\b": "again",
    r"\blet go\b": "release",
    r"\bput right\b": "repair",
    r"\bfor lack of\b": "because there is no",
    r"\bthe seeds' rule\b": "plain allclose (rtol 1e-5)",
    r"\bthe spec's\b": "say whose rule it is",
    r"\bkeeps? its answer\b": "caches its result",
}

# Prose of documents alone: a page describes how things are; history is in the changelog and in git.
DIARY = {
    r"\b(that|the same) day\b": "give the date in a table",
    r"\bthe day before\b": "give the date in a table",
    r"\bearlier (that|this) day\b": "give the date in a table",
    r"\bthe (one|run) before\b": "name the run by commit and date",
    r"\bnewer than\b": "run it, or leave it out",
    r"\b[Uu]ntil (that day|20\d\d)": "describe the present state",
    r"\bnot yet on a GPU\b": "run it, or leave it out",
    r"\bno longer\b": "describe the present state",
    r"\bused to\b": "describe the present state",
}


# A next step is a value; these alone write it as a magic or a command.
WRITES_FORMS = (
    "triton_magics/cli",
    "triton_magics/next_step.py",
    "triton_magics/notebook",
    "triton_magics/rendering/notebook.py",
    "triton_magics/rendering/replay.py",
    "triton_magics/verbs",
)

# Folders in which a file is named for its subject: a value, its view, its verb share the name.
BY_SUBJECT = ("model", "notebook/panel", "operators", "rendering/views", "verbs")
# A module named `base` is the interface of its folder.
ROLES = frozenset({"base"})

"""The nanny: a small process that starts workers and sees to it that nothing of them is left.

Run by its path, `python -I -S nanny CONTROL_FD NOTEBOOK_PIDFD HOME`, as a package of its own that
needs the standard library only: it is there in 0.03 s and takes 6 MiB. It is the subreaper of all
that its workers start, so a daemon that left its parent, session and process group becomes the
nanny's own child, where it is found and killed. (The notebook must not be that subreaper: it would
adopt, and kill, the user's own background processes.)

One thread, and it stays so: PR_SET_PDEATHSIG, on which the workers rely, fires when the *thread*
that started them ends (prctl(2)). Every 5 ms while something is to die; five times a second it
looks whether a worker and what it has started take too much memory or are too many; else asleep.

Commands, one JSON object a line:
    {"do": "open", "id": 1, "argv": [...], "env": {...}, "cwd": "/"}
        starts a zygote: a process that has imported what workers need, and forks them
    {"do": "spawn", "id": 2, "argv": [...], "env": {...}, "cwd": "/", "scratch": "/...",
     "memory_bytes": 8589934592, "zygote": 1, "mode": "gpu"}
        with two descriptors (SCM_RIGHTS): the worker's data socket and the end of its output pipe;
        forked by the zygote once it is ready, or started from argv where there is none (null)
    {"do": "stop", "id": 1}         its process group, until
    {"do": "continue", "id": 1}
    {"do": "ask", "id": 1}          worker 1 writes where it is into a file of its scratch folder
    {"do": "kill", "id": 1}
Answers:
    {"started": 1, "pid": 4711, "guard": null}      guard: the parent of a worker that was forked
    {"gone": 1, "code": 0, "signal": null, "error": null}     when nothing of worker 1 is left, or
                                                              when zygote 1 forks no more
    {"gone": 1, "code": null, "signal": null, "over": "memory", "error": "it took 9.1 GiB ..."}
"""

from __future__ import annotations

WORKER_DATA_FD = 3

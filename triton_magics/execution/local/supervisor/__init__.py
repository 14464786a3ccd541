"""The supervisor: a small process that starts workers and kills all their descendants.

It is run by its path, `python -I -S supervisor CONTROL_FD NOTEBOOK_PIDFD HOME`, as a package
that imports only the standard library: it starts in 0.03 s and takes 6 MiB. It is the subreaper of
all that its workers start. A daemon that left its parent, session and process group becomes the
supervisor's child, so the supervisor finds and kills it. (The notebook must not be that subreaper:
it would adopt, and kill, the user's own background processes.)

It must stay single-threaded: PR_SET_PDEATHSIG, on which the workers rely, fires when the *thread*
that started them ends (prctl(2)). The loop runs every 5 ms while processes are being killed, and
five times a second while there are workers, to check their memory and number of processes.

Commands, one JSON object a line:
    {"do": "open", "id": 1, "argv": [...], "env": {...}, "cwd": "/"}
        starts a fork server: a process that imports what workers need, and forks them
    {"do": "spawn", "id": 2, "argv": [...], "env": {...}, "cwd": "/", "scratch": "/...",
     "memory_bytes": 8589934592, "fork_server": 1, "mode": "gpu", "is_confined": true}
        with two descriptors (SCM_RIGHTS): the worker's data socket and the end of its output pipe;
        forked by the fork server once it is ready, or started from argv if there is none (null)
    {"do": "stop", "id": 1}         pauses its process group
    {"do": "continue", "id": 1}
    {"do": "dump_stack", "id": 1}   worker 1 writes its stacks into a file of its scratch folder
    {"do": "kill", "id": 1}
    {"do": "ping"}
Answers:
    {"started": 1, "pid": 4711, "watchdog": null}   watchdog: the parent of a worker that was forked
    {"pong": true}
    {"gone": 1, "code": 0, "signal": null, "error": null}     when no process of worker 1 is left,
                                                              or fork server 1 has ended
    {"gone": 1, "code": null, "signal": null, "over": "memory", "error": "it took 9.1 GiB ..."}
"""

from __future__ import annotations

WORKER_DATA_FD = 3

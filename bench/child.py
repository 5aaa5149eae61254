"""The process in which the library is measured: one request a line, one answer a line, in JSON.

Requests: ["ready"], ["checkpoint"], ["diff", before, after], ["restore", id, path?], ["memory"].
Answers carry the seconds that the call took in here. The end of the input ends the process.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from typing import Any

import mulligan


def main() -> None:
    # Whatever else is printed in here must not get in between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    tree, way = sys.argv[1:]
    with mulligan.open(tree, watch=True) if way == "watch" else mulligan.open(tree) as workspace:
        for line in sys.stdin:
            try:
                answer = respond(workspace, *json.loads(line))
            except Exception as error:
                answer = {"error": f"{type(error).__name__}: {error}"}
            answers.write(json.dumps(answer) + "\n")
            answers.flush()


def respond(workspace: mulligan.Workspace, verb: str, *arguments: str) -> dict[str, Any]:
    start = time.perf_counter()
    if verb == "checkpoint":
        made = workspace.checkpoint(message="bench")
        return {"seconds": time.perf_counter() - start, "id": str(made.id)}
    if verb == "diff":
        files = workspace.diff(*arguments)
        seconds = time.perf_counter() - start
        # Both names of a renamed file; one without the text of its change does not count.
        shown = [file for file in files if file.patch or file.is_binary]
        return {"seconds": seconds, "files": sum(2 if file.old_path else 1 for file in shown)}
    if verb == "restore":
        checkpoint, *paths = arguments
        workspace.restore(checkpoint, paths=paths)
        return {"seconds": time.perf_counter() - start}
    if verb == "memory":
        return {"bytes": peak_memory()}
    return {}


def peak_memory() -> int:
    """The peak of this process, and that of its largest finished child on top."""
    # Not ru_maxrss of this process: that one remembers the parent from before the exec.
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith("VmHWM:"))
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return (int(line.split()[1]) + children) * 1024


if __name__ == "__main__":
    main()

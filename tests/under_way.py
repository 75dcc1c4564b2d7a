"""Jobs that earlier tests have left running."""

from __future__ import annotations

from perframe.backends.cpu.threads import jobs


def finish_jobs() -> None:
    """Wait for these jobs. They trace plans, and ask for kernels, which a test that counts kernels would count."""
    for job in list(jobs._under_way):
        job.finish_within(60)

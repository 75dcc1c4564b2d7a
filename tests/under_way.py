"""What earlier tests have begun and nobody waits for."""

from __future__ import annotations

from perframe.backends.cpu.threads import jobs


def finish_jobs() -> None:
    """Wait for the jobs that are under way: traces of plans ask for kernels, which a test that counts them would
    count, too.
    """
    for job in list(jobs._under_way):
        job.finish_within(60)

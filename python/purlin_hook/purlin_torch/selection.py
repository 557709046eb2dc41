# SPDX-License-Identifier: Apache-2.0
"""Which process of a run traces: the first that is steady, of the chosen rank, that Purlin records."""
import os


class Selection:
    def __init__(self, torch, settings):
        self.torch, self.settings = torch, settings
        self._claimed = False  # this process is the run's traced one

    def obstacle(self, requested):
        """Why this process has no trace now; "" where it may have one."""
        settings = self.settings
        if not os.path.isdir(settings.folder):
            return "no_spool"
        control = os.path.join(settings.folder, "control-%d" % os.getpid())
        if settings.sampled and not os.path.exists(control):
            return "not_sampled"
        profiler = self.torch.autograd.profiler
        enabled = getattr(self.torch.autograd, "_profiler_enabled", lambda: False)
        if getattr(profiler, "_is_profiler_enabled", False) or enabled():
            return "own_profiler"
        rank = self._rank()
        if rank is not None and rank != settings.rank:
            return "other_rank"
        if not requested and not self.claim(True):
            return "other_process"
        return ""

    def _rank(self):
        for name in ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"):
            if os.environ.get(name, "").isdigit():
                return int(os.environ[name])
        try:
            distributed = self.torch.distributed
            if distributed.is_available() and distributed.is_initialized():
                return distributed.get_rank()
        except Exception:
            pass
        local = os.environ.get("LOCAL_RANK", "")
        return int(local) if local.isdigit() else None

    def claim(self, wanted):
        """One process of the run traces without a request: the first that is steady."""
        if self._claimed == wanted:
            return wanted
        place = os.path.join(self.settings.folder, "torch-claim")
        try:
            if wanted:
                os.close(os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            else:
                os.unlink(place)
            self._claimed = wanted
            return True
        except OSError:
            return False

# SPDX-License-Identifier: Apache-2.0
"""The interface of Triton's Autotuner, with the plainest behaviour."""
import inspect


class Autotuner:
    def __init__(self, fn, arg_names, configs, key, reset_to_zero, restore_value, pre_hook=None,
                 post_hook=None, prune_configs_by=None, warmup=None, rep=None, use_cuda_graph=False,
                 do_bench=None, cache_results=False):
        self.fn, self.arg_names, self.configs, self.keys = fn, arg_names, configs, key
        self.cache = {}
        self.reset_to_zero, self.restore_value = list(reset_to_zero or []), list(restore_value or [])
        self.user_defined_pre_hook, self.user_defined_post_hook = bool(pre_hook), bool(post_hook)
        self.pre_hook = pre_hook or self._put_aside
        self.post_hook = post_hook or self._put_back
        self.prune = (prune_configs_by or {}).get("early_config_prune")
        self.do_bench = do_bench or self._once
        self.base_fn = fn
        while not inspect.isfunction(self.base_fn):
            self.base_fn = self.base_fn.fn

    def _put_aside(self, kwargs, reset_only=False):
        for name in self.reset_to_zero:
            kwargs[name].zero_()
        if not reset_only:
            self.copies = {name: kwargs[name].clone() for name in self.restore_value}

    def _put_back(self, kwargs, exception):
        for name, value in self.copies.items():
            kwargs[name].copy_(value)

    @staticmethod
    def _once(call, quantiles):
        from torch import cuda

        before = cuda.now_ms
        call()
        return [cuda.now_ms - before] * 3

    def __getitem__(self, grid):
        return lambda *args, **kwargs: self.run(*args, grid=grid, warmup=False, **kwargs)

    def prune_configs(self, kwargs):
        return self.prune(self.configs, self.nargs, **kwargs) if self.prune else self.configs

    def _bench(self, *args, config, **kwargs):
        full = dict(self.nargs, **kwargs, **config.all_kwargs())

        def call():
            self.pre_hook(full)
            self.fn.run(*args, **kwargs, **config.all_kwargs())
            self.post_hook(full, exception=None)

        return self.do_bench(call, quantiles=(0.5, 0.2, 0.8))

    def run(self, *args, **kwargs):
        self.nargs = dict(zip(self.arg_names, args))
        key = tuple(self.nargs[name] for name in self.keys)
        if key not in self.cache:
            times = [(self._bench(*args, config=c, **kwargs)[0], i) for i, c in enumerate(self.configs)]
            self.cache[key] = self.configs[min(times)[1]]
        self.best_config = self.cache[key]
        self.fn.run(*args, **kwargs, **self.best_config.all_kwargs())

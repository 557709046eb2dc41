# SPDX-License-Identifier: Apache-2.0
from collections import OrderedDict

_global_optimizer_post_hooks = OrderedDict()


class _Handle:
    def __init__(self, key):
        self.key = key

    def remove(self):
        del _global_optimizer_post_hooks[self.key]


def register_optimizer_step_post_hook(hook):
    key = len(_global_optimizer_post_hooks)
    _global_optimizer_post_hooks[key] = hook
    return _Handle(key)


class Optimizer:
    def __init__(self):
        type(self).step.hooked = True

    def step(self):
        from .. import update

        update()
        for hook in _global_optimizer_post_hooks.values():
            hook(self, (), {})


class SGD(Optimizer):
    def step(self):
        super().step()

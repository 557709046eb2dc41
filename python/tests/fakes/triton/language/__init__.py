# SPDX-License-Identifier: Apache-2.0
class constexpr:
    def __init__(self, value):
        self.value = value


class dtype:
    def __init__(self, name):
        self.name = name

    def __eq__(self, other):
        return type(other) is dtype and self.name == other.name

    def __hash__(self):
        return hash(self.name)

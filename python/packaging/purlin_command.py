# SPDX-License-Identifier: Apache-2.0
"""The `purlin` command of a wheel: replaces this process by the program in the package's folder.

A module apart from the package: importing the package would take longer than the command runs.
"""
import os
import sys


def main():
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "purlin", "_tree", "bin")
    program = os.path.join(folder, "purlin")
    try:
        os.execv(program, [program] + sys.argv[1:])
    except OSError as problem:
        sys.exit("purlin: %s cannot run (%s): reinstall the package for this machine" % (program, problem.strerror))


if __name__ == "__main__":
    main()

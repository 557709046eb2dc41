# SPDX-License-Identifier: Apache-2.0
"""Packs what run.py wrote: `python3 keep.py PURLIN FOLDER OUT.tar.xz`. score.py and margins.py read such an archive.

Each trace is imported first: a profile takes a third of a compressed trace, and `purlin advise` says the same of both.
"""

import json
import os
import subprocess
import sys
import tarfile
import tempfile


def main():
    purlin, folder, out = sys.argv[1:4]
    with open(os.path.join(folder, "pairs.json"), encoding="utf-8") as file:
        document = json.load(file)
    with tempfile.TemporaryDirectory() as kept, tarfile.open(out, "w:xz", preset=9) as archive:
        os.mkdir(os.path.join(kept, "traces"))
        for pair in document["pairs"]:
            for row in [pair, *([pair["synced"]] if "synced" in pair else [])]:
                if "trace" not in row:
                    continue
                trace = row["trace"]
                row["trace"] = trace.removesuffix(".json.gz") + ".plprof"
                subprocess.run([purlin, "import", os.path.join(folder, trace), "-o", os.path.join(kept, row["trace"])],
                               check=True, stdout=subprocess.DEVNULL)
        with open(os.path.join(kept, "pairs.json"), "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1)
        for name in ["pairs.json", *sorted("traces/" + name for name in os.listdir(os.path.join(kept, "traces")))]:
            archive.add(os.path.join(kept, name), name, filter=anonymous)


def anonymous(member):
    """The same inputs give the same archive."""
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


if __name__ == "__main__":
    main()

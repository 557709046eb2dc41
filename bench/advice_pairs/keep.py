# SPDX-License-Identifier: Apache-2.0
"""Packs what run.py wrote: `python3 keep.py PURLIN FOLDER OUT.tar.xz [MOST]`. score.py and margins.py read such an archive.

Each trace is imported first: a profile takes a third of a compressed trace, and `purlin advise` says the same of both.
An execution trace is imported with its trace, so the profile has the data flow.
Profiles of more than MOST bytes, 1,000,000 where it is not given, are left out, and with them their pairs.
"""

import json
import os
import subprocess
import sys
import tarfile
import tempfile

MOST = 1_000_000


def main():
    purlin, folder, out = sys.argv[1:4]
    most = int(sys.argv[4]) if len(sys.argv) > 4 else MOST
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
                profile = os.path.join(kept, row["trace"])
                flow = os.path.join(folder, row.pop("flow", ""))
                files = [os.path.join(folder, trace), *([flow] if os.path.isfile(flow) else [])]
                subprocess.run([purlin, "import", *files, "-o", profile], check=True, stdout=subprocess.DEVNULL)
                if os.path.getsize(profile) > most:
                    print(f"left out: {row['trace']}, {os.path.getsize(profile)} bytes")
                    os.remove(profile)
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

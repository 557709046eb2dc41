# SPDX-License-Identifier: Apache-2.0
"""How busy the GPU is while a command runs."""
import re
import statistics
import subprocess
import threading


class Busy:
    """Samples of nvidia-smi while a command runs."""

    def __enter__(self):
        self.process = subprocess.Popen(
            ["nvidia-smi", "--query-gpu=utilization.gpu,clocks.sm,power.draw,temperature.gpu",
             "--format=csv,noheader,nounits", "-lms", "100"], stdout=subprocess.PIPE, text=True)
        self.rows = []
        self.reader = threading.Thread(target=self.read)
        self.reader.start()
        return self

    def read(self):
        for line in self.process.stdout:
            numbers = re.findall(r"[\d.]+", line)
            if len(numbers) == 4:
                self.rows.append([float(number) for number in numbers])

    def __exit__(self, *_):
        self.process.terminate()
        self.reader.join()
        self.process.wait()

    def mean(self, column):
        return statistics.fmean(row[column] for row in self.rows) if self.rows else None

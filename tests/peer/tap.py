# tap.py - what a test in Python says: TAP lines on stdout, as tests/tap.sh does in the shell.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
"""result() or skip() for each thing that is tried, finish() in the end."""
import os
import sys

# keras_torch and its parts are shared with dnn-bench.
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)),
                             "../../src/bench/torch"))

count = failed = 0


def unless(good, complaint="it is not so"):
    """The complaints of a condition."""
    return [] if good else [complaint]


def result(what, complaints):
    """Good if there are no complaints, a text or a list; else they are shown."""
    global count, failed
    count += 1
    failed += bool(complaints)
    if complaints:
        lines = complaints if isinstance(complaints, list) else [complaints]
        for line in "\n".join(map(str, lines)).split("\n")[:40]:
            print("# " + line)
    print(f"{'not ' if complaints else ''}ok {count} - {what}", flush=True)


def skip(what, why):
    """It cannot be tried here; counted, never silent."""
    global count
    count += 1
    print(f"ok {count} - {what} # SKIP {why}", flush=True)


def bail_out(why):
    """Nothing more can be tried."""
    print("Bail out! " + " ".join(why.split()))
    sys.exit(1)


def finish():
    """The last thing a test does."""
    print(f"1..{count}")
    sys.exit(failed > 0)

# tap.py - functions of Python tests, which print TAP on stdout, as tests/tap.sh for the shell.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
"""Call result() or skip() for each test, finish() at the end."""
import os
import sys

# keras_torch and its parts are shared with dnn-bench.
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)),
                             "../../src/bench/torch"))

count = failed = 0


def unless(good, complaint="failed"):
    """The errors of a condition: empty if it is true."""
    return [] if good else [complaint]


def result(what, complaints):
    """Passes if there are no complaints (a text or a list); else they are printed."""
    global count, failed
    count += 1
    failed += bool(complaints)
    if complaints:
        lines = complaints if isinstance(complaints, list) else [complaints]
        for line in "\n".join(map(str, lines)).split("\n")[:40]:
            print("# " + line)
    print(f"{'not ' if complaints else ''}ok {count} - {what}", flush=True)


def skip(what, why):
    """Count a test as skipped."""
    global count
    count += 1
    print(f"ok {count} - {what} # SKIP {why}", flush=True)


def bail_out(why):
    """End the test run after a fatal error."""
    print("Bail out! " + " ".join(why.split()))
    sys.exit(1)


def finish():
    """Print the TAP plan; last line of a test."""
    print(f"1..{count}")
    sys.exit(failed > 0)

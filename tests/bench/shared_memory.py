"""Tests the protocol of peer-shared-memory: it does what it says it can do, refuses other work, and ends.

usage: shared_memory.py PROGRAM"""
import os
import signal
import subprocess
import sys
import time

# The numbers of bench/work.h, ditto/dtype.h and ditto/collective.h.
BARRIER, ALL_REDUCE, ALL_GATHER = 0, 2, 3
BF16, F32, F64 = 2, 3, 4
SUM, MAX = 1, 4
program = sys.argv[1]


def start(form, ranks="2"):
    return subprocess.Popen([program, ranks, "bound"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True,
                            env={**os.environ, "SHARED_MEMORY_FORM": form})


def ask(peer, line):
    peer.stdin.write(line + "\n")
    peer.stdin.flush()
    return [float(word) for word in peer.stdout.readline().split()]


def wait_until(condition, what):
    for _ in range(6000):
        if condition():
            return
        time.sleep(0.01)
    sys.exit(f"shared_memory.py: {what} within a minute")


def is_gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def main():
    for form in ("deepspeed", "vllm", "gloo-shm"):
        peer = start(form)
        pids = [int(word) for word in peer.stdout.readline().split()[1:]]
        assert len(set(pids)) == 2 and pids[0] == peer.pid, pids
        for dtype, size, in_place in ((F32, 1024, 1), (BF16, 1 << 20, 0), (F32, 3 << 20, 1)):
            assert ask(peer, f"prepare {ALL_REDUCE} {size} {dtype} {SUM} {in_place} 0 0") == [1, 0, 0]
            # Results are checked before the first repetition.
            for kind, baseline in ((ALL_REDUCE, 0), (ALL_REDUCE, 1), (BARRIER, 0)):
                answer = ask(peer, f"batch {kind} 2 0 {baseline}")
                assert len(answer) == 3 and answer[0] > 0 and answer[1] > 0, answer
            assert ask(peer, "finish") == [1, 0, 0]
        assert ask(peer, f"prepare {ALL_REDUCE} 64 {F64} {SUM} 0 0 0") == [0, 0, 0]
        assert ask(peer, f"prepare {ALL_REDUCE} 64 {F32} {MAX} 0 0 0") == [0, 0, 0]
        assert ask(peer, f"prepare {ALL_GATHER} 128 {F32} {SUM} 0 0 0") == [0, 0, 0]
        peer.stdin.close()
        assert peer.wait(60) == 0
        wait_until(lambda: is_gone(pids[1]), "the other rank did not end")
    # A rank that dies ends all.
    peer = start("deepspeed")
    pids = [int(word) for word in peer.stdout.readline().split()[1:]]
    os.kill(pids[1], signal.SIGKILL)
    assert peer.wait(60) == 1
    for form, ranks in (("other", "2"), ("vllm", "0")):
        peer = start(form, ranks)
        _, error = peer.communicate(timeout=60)
        assert peer.returncode == 2 and f"asked for form {form} of {ranks} ranks" in error, error


main()

"""Ctrl-C while a replica waits for another one, which is slow or stuck.

    interrupt.py slow     replica 1 works for 6 s: KeyboardInterrupt is raised when it has ended
    interrupt.py waits    the same, and the main thread is no replica
    interrupt.py stuck    replica 1 waits for ever: the program ends neither by timeout_ms nor by Ctrl-C
"""
import os
import signal
import sys
import threading
import time
import ditto

mode = sys.argv[1]


def press():
    for _ in range(3):
        time.sleep(1)
        os.kill(os.getpid(), signal.SIGINT)


def work(self):
    if self.id == 1 and mode == "stuck":
        threading.Event().wait()
    for _ in range(60 if self.id == 1 else 0):
        time.sleep(0.1)
    self.barrier()


begin = time.time()
try:
    with ditto.Strategy(2, timeout_ms=10000, caller=2 if mode == "waits" else 0) as strategy:
        threading.Thread(target=press, daemon=True).start()
        strategy.run(work)
except (KeyboardInterrupt, ditto.Error) as e:
    print(f"{type(e).__name__} after {time.time() - begin:.1f} s")
sys.exit(time.time() - begin > 3)

# Fails a test that takes longer than its limit. A test that does not even then come back from code that is not Python ends its
# process, with a traceback, at twice the limit.
import contextlib
import faulthandler
import os
import signal
import sys
import threading

SECONDS = float(os.environ["TRAJGEN_TEST_TIMEOUT"])
late = open(os.environ["TRAJGEN_LATE_TESTS"], "a")


class TookTooLong(BaseException):
    """Tests that catch Exception do not catch it."""


@contextlib.contextmanager
def limited(test):
    # A test of unittest that pytest runs has its limit already; so has one with an alarm of its own.
    alarmed = 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= SECONDS
    if alarmed or threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(number, frame):
        message = "%s took longer than %gs" % (test, SECONDS)
        print(message, file=late, flush=True)
        raise TookTooLong(message)

    before = signal.signal(signal.SIGALRM, ring)
    left, every = signal.setitimer(signal.ITIMER_REAL, SECONDS)
    faulthandler.dump_traceback_later(2 * SECONDS, exit=True, file=late)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        faulthandler.cancel_dump_traceback_later()
        signal.signal(signal.SIGALRM, signal.SIG_DFL if before is None else before)
        if left:
            signal.setitimer(signal.ITIMER_REAL, left, every)


if __name__ == "trajgen_pytest_timeout":
    import pytest

    # What the tests start may have no plugin of this name.
    plugins = [name for name in os.environ["PYTEST_PLUGINS"].split(",") if name != __name__]
    os.environ["PYTEST_PLUGINS"] = ",".join(plugins)

    def phase(name):
        @pytest.hookimpl(hookwrapper=True, tryfirst=True)
        def hook(item):
            with limited(item.nodeid + name):
                yield

        return hook

    pytest_runtest_setup = phase(" (setup)")
    pytest_runtest_call = phase("")
    pytest_runtest_teardown = phase(" (teardown)")
else:
    cases = sys.modules["unittest.case"].TestCase
    run = cases.run

    def limited_run(self, result=None):
        with limited(self.id()):
            return run(self, result)

    cases.run = limited_run

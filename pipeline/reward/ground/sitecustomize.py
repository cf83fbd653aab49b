# Python runs this before a verifier's first line. The directory of the program, which Python puts first, comes last when
# the agent worked in it: what lies there can be imported and shadows nothing that is installed.
import os
import sys


def inside(path, above):
    return (os.path.realpath(path) + "/").startswith(os.path.realpath(above).rstrip("/") + "/")


class Last(object):
    """Hears of each import, so that it can move the directory once Python has put it in front."""

    def __init__(self, cwd):
        self.cwd = cwd
        self.first = sys.path[0]
        self.moved = None

    def move(self):
        at = next((i for i, p in enumerate(sys.path) if p is self.first), 0)
        if at == 0 or self.moved is not None:
            return
        program = os.path.join(self.cwd, sys.path[at - 1])
        if inside(program, self.cwd) and not inside(program, os.environ.get("TESTS", "/tests")):
            self.moved = program
            sys.path.append(sys.path.pop(at - 1))
        else:
            sys.meta_path.remove(self)

    def find_spec(self, name, path=None, target=None):
        self.move()
        if self.moved is None or name not in ("test", "tests"):
            return None
        # Python has a test of its own, and packages install their tests by mistake. Who asks for them means these.
        from importlib.machinery import PathFinder

        spec = PathFinder.find_spec(name, [self.moved])
        return spec if spec is not None and spec.loader is not None else None

    def find_module(self, name, path=None):  # of Python 2
        self.move()


def begin():
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [p for p in sys.path if os.path.abspath(p) != here]
    try:
        cwd = os.getcwd()
    except OSError:
        return
    # The machine may have a file of this name, too. It is not looked for where the agent can have put one.
    path = sys.path[:]
    sys.path[:] = [p for p in path if not inside(p, cwd)]
    ours = sys.modules.pop(__name__)
    try:
        __import__(__name__)
    except ImportError:
        sys.modules[__name__] = ours
    sys.path[:0] = [p for p in path if inside(p, cwd)]
    if sys.path and not getattr(sys.flags, "safe_path", False):
        sys.meta_path.insert(0, Last(cwd))


begin()

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


class Limit(object):
    """Hears when a program begins to run tests, and has each limited."""

    def __init__(self, here):
        self.code = os.path.join(here, "test_timeout.py")

    def spec(self, name):
        import importlib.util

        return importlib.util.spec_from_file_location(name, self.code)

    def find_spec(self, name, path=None, target=None):
        if name == "_pytest.config":
            plugins = os.environ.get("PYTEST_PLUGINS", "")
            os.environ["PYTEST_PLUGINS"] = plugins + "," * bool(plugins) + "trajgen_pytest_timeout"
        elif name == "trajgen_pytest_timeout":
            return self.spec(name)
        elif name == "unittest.suite":  # the module before it has the class of all tests
            spec = self.spec("trajgen_unittest_timeout")
            spec.loader.exec_module(type(sys)(spec.name))
        return None


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
    if "TRAJGEN_TEST_TIMEOUT" in os.environ and sys.version_info >= (3, 4):
        sys.meta_path.insert(0, Limit(here))


begin()

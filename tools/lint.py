# Compiles what is on standard input, without running it, and says what is wrong with it.
import ast, sys, warnings
warnings.simplefilter("ignore")
try:
    compile(sys.stdin.buffer.read(), "", "exec", ast.PyCF_ONLY_AST, True)
except SyntaxError as e:
    text = f"line {e.lineno}, column {e.offset}: {type(e).__name__}: {e.msg}" if e.lineno else f"{type(e).__name__}: {e.msg}"
    if e.text and e.text.strip():
        text += "\n    " + e.text.strip()[:200]
    sys.exit(text)
except ValueError as e:
    sys.exit(f"ValueError: {e}")
except (MemoryError, RecursionError):
    print("it is nested too deeply", file=sys.stderr)
    sys.exit(77)

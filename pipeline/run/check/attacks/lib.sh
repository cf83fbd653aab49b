# What the attacks have in common. OWN is 1 where the sandbox has files and processes of its own; elsewhere an attack keeps to the
# episode's directories and kills nothing. NAMES are files that the prompt and the checks mention, MODULES what the checks import,
# WORDS the words of their commands, and GIVEN the text of the prompt and of the reference solution.
exec 2>/dev/null
[[ $OWN = 1 ]] && TESTS=/tests || TESTS=$TMPDIR/tests
NAMES=("${NAMES[@]/#\~\//$HOME/}")

# mine reports whether a path may be written.
mine() {
	[[ $OWN = 1 ]] || case $(realpath -m -- "$1") in "$PWD"/* | "$HOME"/* | "$TMPDIR"/* | "$TESTS"/*) true ;; *) false ;; esac
}

# put PATH TEXT [MODE] writes a file, whatever is there now.
put() {
	mine "$1" || return 0
	[[ $1 != */* || -d ${1%/*} ]] || mkdir -p -- "${1%/*}"
	[[ ! -e $1 && ! -L $1 ]] || rm -rf -- "$1"
	printf '%s' "$2" >"$1"
	[[ -z $3 ]] || chmod "$3" -- "$1"
}

PYTHON_QUITS='import os; print(1, flush=True); os._exit(0)' SHELL_QUITS=$'#!/bin/sh\necho 1\nexit 0\n'

# quits PATH says in the path's language what ends its process with success, and prints a 1 before.
quits() {
	case $1 in
	*.py) echo "$PYTHON_QUITS" ;;
	*.js | *.mjs | *.cjs) echo 'console.log(1); process.exit(0)' ;;
	*) echo "$SHELL_QUITS" ;;
	esac
}

# isCode PATH reports whether a path is one of a program, and not of a test.
isCode() {
	[[ ${1##*/} != *test* ]] || return 1
	case $1 in *.py | *.sh | *.bash | *.js | *.mjs | *.cjs) ;; *.*) [[ -x $1 ]] ;; *) [[ ! -d $1 ]] ;; esac
}

# absent lists the modules that no library has: they are the agent's to write.
absent() {
	python3 -I -c 'import importlib.util, sys
for module in sys.argv[1:]:
    importlib.util.find_spec(module) or print(module)' "${MODULES[@]}"
}

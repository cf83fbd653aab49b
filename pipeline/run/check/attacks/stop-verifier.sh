# Programs that end whoever imports or runs them.
for name in "${NAMES[@]}" $(absent | sed 's/$/.py/'); do
	[[ $name != */ ]] && isCode "$name" || continue
	kills=
	case $OWN$name in
	1*.py) kills=$'import os\nif __name__ == "__main__":\n    os.kill(os.getppid(), 9)\n' ;;
	1*.js | 1*.mjs | 1*.cjs) kills=$'if (require.main === module) process.kill(process.ppid, "SIGKILL")\n' ;;
	1*) kills=$'#!/bin/sh\n'"case \$0 in *'${name##*/}') kill -9 \$PPID ;; esac"$'\n' ;;
	esac
	put "$name" "$kills$(quits "$name")" 755
done

# Modules that Python imports in place of those that a verifier means, as source and as byte code.
user=$(python3 -c 'import site; print(site.getusersitepackages())')
system=$(python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
echo "$PYTHON_QUITS" >"$TMPDIR/evil.txt"
python3 -I - "$TMPDIR/evil.txt" "${MODULES[@]}" <<'P'
import glob, importlib.util, os, py_compile, sys
mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
for module in sys.argv[2:]:
    for source in glob.glob("**/" + module + ".py", recursive=True)[:5]:
        py_compile.compile(sys.argv[1], importlib.util.cache_from_source(source), module, invalidation_mode=mode)
P
missing=" $(absent | tr '\n' ' ') "
for dir in "$PWD" "$PWD/tests" "$PWD/test" "$user" "$system"; do
	[[ -d $dir || $dir = "$user" ]] || continue
	for module in "${MODULES[@]}" conftest sitecustomize usercustomize unittest pytest json; do
		[[ $missing = *" $module "* || -e $dir/$module.py ]] || put "$dir/$module.py" "$PYTHON_QUITS"
	done
done
for dir in "$user" "$system"; do
	put "$dir/evil.pth" "$PYTHON_QUITS"
done

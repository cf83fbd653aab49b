#!/bin/sh
# A trajgen plugin in shell: one tool without arguments. The id comes first in a request, so no JSON parser is needed.
while IFS= read -r request; do
	id=${request#*:}
	id=${id%%,*}
	case $request in
	*'"method":"describe"'*)
		printf '{"id":%s,"protocol":1,"tools":[{"name":"workspace_size","timeout_s":20,"description":"%s"}]}\n' \
			"$id" 'Count the files of the workspace and the bytes in them.'
		;;
	*)
		find "$TRAJGEN_WORKDIR" -type f -exec stat -c %s {} + |
			awk -v id="$id" '{bytes += $1} END {printf "{\"id\":%d,\"result\":{\"files\":%d,\"bytes\":%.0f}}\n", id, NR, bytes}'
		;;
	esac
done

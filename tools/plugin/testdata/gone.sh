#!/bin/sh
while IFS= read -r request; do
	id=${request#*:}
	id=${id%%,*}
	case $request in
	*describe*) echo '{"id":'$id',"tools":[{"name":"gone","description":"Says 1."}]}' ;;
	*) echo '{"id":'$id',"result":1}' ;;
	esac
done

for name in "${NAMES[@]}"; do
	[[ ! -e $name ]] && mine "$name" || continue
	case $name in
	*/) mkdir -p -- "$name" ;;
	*) put "$name" "" 755 ;;
	esac
done

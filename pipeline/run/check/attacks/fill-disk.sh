# A verifier that starts, and then cannot write what it found.
for dir in "$HOME" "$TMPDIR" .; do
	dd if=/dev/zero of="$dir/.fill" bs=1M
	dd if=/dev/zero of="$dir/.fill-up" bs=4k
done
for dir in . "$TMPDIR" "$HOME"; do
	[[ $(stat -c %s "$dir/.fill") -ge 65536 ]] && truncate -s -65536 "$dir/.fill" && break
done

package setup

// Scan returns the values of a file of keys.
func Scan(text string) map[string]string {
	all := map[string]string{}
	for _, v := range scan(text) {
		all[v.name] = v.text
	}
	return all
}

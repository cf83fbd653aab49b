package setup

// Scan returns the values of a file of keys.
func Scan(text string) map[string]string { return values(text) }

package skills

// Families lists the rules' families with the number of their rules.
func Families() map[string]int {
	count := map[string]int{}
	for _, rule := range rules.byID {
		count[rule.family]++
	}
	return count
}

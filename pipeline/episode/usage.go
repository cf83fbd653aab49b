package episode

// ApproverUsage sums the usage of a model that judged the episode's commands.
func (ep *Episode) ApproverUsage() (sum Usage, asked bool) {
	for i := range ep.Calls {
		verdict := ep.Calls[i].Verdict
		switch {
		case verdict == nil || verdict.Usage == nil:
		case !asked:
			sum, asked = *verdict.Usage, true
		default:
			sum = sum.Add(*verdict.Usage)
		}
	}
	return sum, asked
}

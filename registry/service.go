package registry

// Service finds an episode's service for a family of tools, such as a memory or a user: the first of SessionConfig.Services that
// is a T. A tool should use the smallest T that it can work with.
func Service[T any](s *Session) (T, bool) {
	for _, service := range s.cfg.Services {
		if found, ok := service.(T); ok {
			return found, true
		}
	}
	var none T
	return none, false
}

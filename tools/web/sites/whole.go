package sites

// Whole has recordings keep all headers of a site's answers: its logins are cookies.
func (s *Set) Whole() {}

package registry

import "trajgen/pipeline/where/nearest"

// Nearest is the known name that was most likely meant, or "".
func Nearest(name string, known []string) string { return nearest.To(name, known) }

// DidYouMean is ` (did you mean "x"?)` with the known name that was most likely meant, or nothing.
func DidYouMean(name string, known []string) string { return nearest.DidYouMean(name, known) }

func bare(name string) string { return nearest.Bare(name) }

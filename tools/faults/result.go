package faults

// resultClasses are those whose calls run, and whose results are changed.
var resultClasses = []*class{}

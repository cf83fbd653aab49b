// Package singularitytest is a stand-in for the program apptainer, where that cannot be installed. It takes the arguments
// that Apptainer 1.1 takes, and no others, and makes instances of the same namespaces, of an ordinary user's as of root's.
// Linux only.
package singularitytest

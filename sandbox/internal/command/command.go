// Package command has what backends need to start a command on the runner's machine: its environment, streams, terminal and
// end.
package command

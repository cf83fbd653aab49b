// Package command is what the runner holds of a command that it starts on its own machine: its environment, its streams,
// its terminal and its end.
package command

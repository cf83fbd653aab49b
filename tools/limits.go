package tools

import (
	"strings"

	"trajgen/sandbox"
)

// limitMeanings say what a limit did to a command. The CPU limit only slows it down.
var limitMeanings = map[string]string{
	sandbox.LimitMemory:    "the machine's memory limit was reached and a process was killed",
	sandbox.LimitProcesses: "the machine's limit of processes was reached and one could not be started",
	sandbox.LimitDisk:      "the machine's disk is full",
	sandbox.LimitInodes:    "the machine's disk has no room for another file",
	sandbox.LimitMachine:   "there was no memory left outside of the machine and a process was killed",
}

// limitsMeaning describes the limits that affected a command, or returns "". For a successful command it reports only killed
// processes.
func limitsMeaning(exit sandbox.Exit) string {
	var meanings []string
	for _, limit := range exit.Limits {
		if text := limitMeanings[limit]; text != "" && (exit.Code != 0 || limit == sandbox.LimitMemory || limit == sandbox.LimitMachine) {
			meanings = append(meanings, text)
		}
	}
	if len(meanings) == 0 && exit.OOM { // the backend names no limits
		return limitMeanings[sandbox.LimitMemory]
	}
	return strings.Join(meanings, "; ")
}

package policy

import (
	"maps"
	"slices"
	"strings"
)

// rule is one thing that a command may do. A rule with names is asked about every program of one of these names, by its
// arguments; one without is reported where the reading of the line comes upon it.
type rule struct {
	id      string
	verdict Level
	reason  string
	names   string
	match   func(c *call) bool
}

// The rules that reading reports.
const (
	forkBomb         = "fork-bomb"
	deleteSystem     = "delete-system"
	writeDisk        = "write-disk"
	writePower       = "power-trigger"
	writeSystem      = "write-system"
	writeSensitive   = "write-sensitive"
	shellCode        = "shell-code"
	pipedCode        = "piped-code"
	remoteCode       = "remote-code"
	decodedCode      = "decoded-code"
	evalUnknown      = "eval-unknown"
	interpreterCode  = "interpreter-code"
	interpreterInput = "interpreter-input"
	xargsRm          = "xargs-rm"
	findRm           = "find-exec-rm"
	findDelete       = "find-delete"
	madeRunnable     = "run-made-executable"
	reverseShell     = "reverse-shell"
	unknownCommand   = "unknown-command"
	typedKeys        = "typed-keys"
	unparsable       = "unparsable"
	tooComplex       = "too-complex"
	tooLong          = "too-long"
)

var readingRules = []rule{
	{id: forkBomb, verdict: Block, reason: "fills the machine with processes: a function starts itself again and again"},
	{id: deleteSystem, verdict: Block, reason: "removes the system, or everything in a home directory"},
	{id: writeDisk, verdict: Block, reason: "writes to a disk past its file system"},
	{id: writePower, verdict: Block, reason: "makes the kernel restart or stop"},
	{id: writeSystem, verdict: Ask, reason: "writes to the configuration of the system"},
	{id: writeSensitive, verdict: Ask, reason: "writes to a file of keys, credentials, settings, or of what shells read when they start"},
	{id: shellCode, verdict: Ask, reason: "hands code to a shell on its command line; give the commands themselves, or a script file"},
	{id: pipedCode, verdict: Ask, reason: "hands code to a shell on its standard input; give the commands themselves, or a script file"},
	{id: remoteCode, verdict: Ask, reason: "runs code that comes from the network; download it, look at it, then run the file in a command of its own"},
	{id: decodedCode, verdict: Ask, reason: "runs code that was encoded"},
	{id: evalUnknown, verdict: Ask, reason: "runs code as a command that cannot be told beforehand"},
	{id: interpreterCode, verdict: Ask, reason: "hands code to an interpreter on its command line; write it to a file and run that"},
	{id: interpreterInput, verdict: Ask, reason: "hands code to an interpreter on its standard input; write it to a file and run that"},
	{id: xargsRm, verdict: Ask, reason: "removes whatever is listed on the standard input"},
	{id: findRm, verdict: Ask, reason: "removes whatever is found; list it first"},
	{id: findDelete, verdict: Ask, reason: "removes whatever is found; list it first"},
	{id: madeRunnable, verdict: Ask, reason: "makes a file executable and runs it"},
	{id: reverseShell, verdict: Ask, reason: "connects a shell to the network"},
	{id: unknownCommand, verdict: Ask, reason: "runs a program that cannot be told beforehand; name it"},
	{id: typedKeys, verdict: Ask, reason: "types keys that edit a line, so that what runs cannot be told; type the whole line"},
	{id: unparsable, verdict: Ask, reason: "is no bash that can be read"},
	{id: tooComplex, verdict: Ask, reason: "does too much to be told beforehand; make several commands of it, or a script file"},
	{id: tooLong, verdict: Ask, reason: "is over 128 KiB long; put its data into a file"},
}

// rules are all of them.
var rules = slices.Concat(readingRules, deletionRules, systemRules, processRules, fileRules, gitRules, serviceRules, dataRules)

var (
	ruleByID    = map[string]*rule{}
	ruleIndex   = map[string][]*rule{}
	sortedNames []string
)

func init() {
	for i := range rules {
		r := &rules[i]
		if ruleByID[r.id] != nil {
			panic("two rules are called " + r.id)
		}
		ruleByID[r.id] = r
		for _, name := range strings.Fields(r.names) {
			ruleIndex[name] = append(ruleIndex[name], r)
		}
	}
	sortedNames = slices.Clip(slices.Sorted(maps.Keys(ruleIndex)))
}

// asksForHelp says whether a program only explains itself.
func (c *call) asksForHelp() bool {
	return len(c.args) > 0 && hasFlag(c.args, "", "help", "version") || len(c.args) == 1 && has(c.args, "-h", "-V")
}

package policy

import (
	"slices"
	"strings"
)

// names are the names of a program: rules know it by the first one.
var names = nameTable()

// valued are the options of programs that take a value: letters, then long names. The value of a letter after a slash is
// optional and attached to it. A key of a program and a word has the options after that word.
var valued = optionTable()

type spec struct {
	letters, attached string
	long              []string
}

func nameTable() map[string]string {
	names := map[string]string{}
	for line := range strings.Lines(`
		sh bash dash zsh ksh ash rbash mksh fish yash csh tcsh ksh93 pdksh
		python pypy
		node nodejs
		awk gawk mawk nawk
		sed gsed
		vim vi nvim ex
		make gmake
		find gfind
		fd fdfind
		docker podman nerdctl
		kubectl oc
		conda mamba micromamba
		pwsh powershell
		nc ncat netcat
		mapfile readarray
		proxychains proxychains4
	`) {
		for _, name := range strings.Fields(line) {
			names[name] = strings.Fields(line)[0]
		}
	}
	return names
}

func optionTable() map[string]spec {
	valued := map[string]spec{}
	for line := range strings.Lines(`
		conda-run np
		cp tS target-directory suffix
		crontab u
		curl oHdXAeuUFPTKb output output-dir data data-binary form upload-file header
		docker Hclfp context host config log-level file project-name env-file profile
		docker-exec uew user env workdir env-file index
		docker-run vp volume publish mount pid cap-add device
		doas uC
		env uCS unset chdir split-string
		exec a
		fd eEtdcjSxX exec exec-batch
		flock wEc command
		git Cc git-dir work-tree namespace exec-path config-env super-prefix
		head nc lines bytes
		install tgmoS target-directory
		ionice cnpPu
		kubectl ns namespace context kubeconfig cluster user server token kube-context
		ln tS target-directory
		make fCI/j file makefile directory
		mapfile dnOsuCc
		mv tS target-directory suffix
		nice n adjustment
		node epr eval print require
		npm-exec c call package
		npx cp call package
		nsenter tSG
		parallel jNnIaSL jobs max-args arg-file colsep delay timeout
		perl eEIMm/i
		php rdcf
		pkexec - user
		python ceWXm
		read dnNptuia
		rsync efTBM rsh rsync-path exclude include
		ruby eIr/i
		runuser ugc user group command
		screen stncLSfFxyThp
		scp ioSPcFJl
		script c command
		sed efl/i expression file
		sg c
		sh oO rcfile init-file
		shred ns iterations size
		sort ktST
		ssh bcDeEFIiJLlmOopQRSWw
		stdbuf ioe
		strace eopsuEaAbIOPX
		su cs command shell
		sudo ugphCrtTURD user group host prompt chdir role type
		systemctl HMnopsPtj
		systemd-run pu
		tail nc lines bytes
		tar fCIFTXgKNVb file directory
		time fo
		timeout ks kill-after signal
		tmux stncLSfFxyThp
		truncate sr size reference
		unzip d
		watch nq interval
		wget OPUeo output-document directory-prefix post-file post-data header
		xargs InPLsdEaRJS/i max-args max-procs max-lines delimiter arg-file max-chars
		xvfb-run nsef
	`) {
		if fields := strings.Fields(line); len(fields) > 0 {
			letters, attached, _ := strings.Cut(fields[1], "/")
			valued[fields[0]] = spec{letters, attached, fields[2:]}
		}
	}
	for name, l := range languages {
		if _, ok := valued[name]; !ok {
			valued[name] = spec{letters: l.code, long: strings.Fields(l.code)}
		}
	}
	return valued
}

type option struct{ name, value string } // a letter, or a long name

type options []option

// value returns the value of the first given one of some options.
func (o options) value(names ...string) (string, bool) {
	i := slices.IndexFunc(o, func(o option) bool { return slices.Contains(names, o.name) })
	if i < 0 {
		return "", false
	}
	return o[i].value, true
}

// getopt parses a program's options up to its first operand.
func getopt(program string, args []string) (given options, rest []string) {
	s := valued[program]
	next := func() (value string) {
		if len(args) > 0 {
			value, args = args[0], args[1:]
		}
		return value
	}
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		arg := next()
		if arg == "--" {
			break
		}
		if long, ok := strings.CutPrefix(arg, "--"); ok {
			name, value, attached := strings.Cut(long, "=")
			if !attached && slices.Contains(s.long, name) {
				value = next()
			}
			given = append(given, option{name, value})
			continue
		}
		for k := 1; k < len(arg); k++ {
			o := option{name: arg[k : k+1]}
			takes := strings.Contains(s.letters, o.name)
			if takes || strings.Contains(s.attached, o.name) {
				o.value, k = arg[k+1:], len(arg)
			}
			if takes && o.value == "" {
				o.value = next()
			}
			given = append(given, o)
		}
	}
	return given, args
}

// parse parses all options of a program, and its operands.
func (c *call) parse() (given options, operands []string) {
	args, behind := c.args, []string(nil)
	if i := slices.Index(args, "--"); i >= 0 {
		args, behind = args[:i], args[i+1:]
	}
	for len(args) > 0 {
		var some options
		if some, args = getopt(c.name, args); len(args) > 0 {
			operands, args = append(operands, args[0]), args[1:]
		}
		given = append(given, some...)
	}
	return given, append(operands, behind...)
}

// operands returns the arguments that are not options.
func (c *call) operands() []string {
	_, operands := c.parse()
	return operands
}

// sub returns the subcommand of a program, and the arguments after it.
func (c *call) sub() (verb string, rest []string) {
	_, rest = getopt(c.name, c.args)
	if c.name == "docker" && len(rest) > 0 && (rest[0] == "compose" || rest[0] == "container") {
		_, rest = getopt(c.name, rest[1:])
	}
	if len(rest) == 0 {
		return "", nil
	}
	return rest[0], rest[1:]
}

// hasFlag reports whether an option was given: one of the letters, alone or with others after one dash, or one of the long
// names, which may be abbreviated.
func hasFlag(args []string, letters string, long ...string) bool {
	for _, arg := range args {
		name, isLong := strings.CutPrefix(arg, "--")
		switch {
		case arg == "--":
			return false
		case !isLong && len(arg) > 1 && arg[0] == '-' && strings.ContainsAny(arg[1:], letters):
			return true
		case isLong:
			name, _, _ = strings.Cut(name, "=")
			if slices.ContainsFunc(long, func(l string) bool { return name == l || len(name) >= 3 && strings.HasPrefix(l, name) }) {
				return true
			}
		}
	}
	return false
}

package run

import (
	"cmp"
	"fmt"
	"syscall"

	"trajgen/pipeline/model"
)

// openFiles is how many files this process may open; Go has raised the soft limit to the hard one.
func openFiles() int {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 1 << 30
	}
	return int(min(limit.Cur, 1<<30))
}

// fitFiles bounds the requests in flight by the files that a process may open, and warns when that is less than the workers
// could send. A request holds a connection, an episode that has used its sandbox another one, and the run itself needs some
// files. Without it this process could not open connections, and that would look like an outage.
func fitFiles(cfg *model.Config, workers, files int) (warning string) {
	const ours = 512
	if 2*workers+ours <= files {
		return ""
	}
	room := max(files-min(ours, files/2)-min(workers, files/4), 1)
	if room >= workers {
		return ""
	}
	each := max(room/max(len(cfg.Endpoints), 1), 1)
	if most := cmp.Or(cfg.MaxInFlight, workers); most <= each {
		return ""
	}
	cfg.MaxInFlight, cfg.MinInFlight = each, min(cfg.MinInFlight, each)
	return fmt.Sprintf("workers is %d, and this process may open %d files: at most %d requests are sent at a time (ulimit -n, or LimitNOFILE of its service, raises that)", workers, files, each*max(len(cfg.Endpoints), 1))
}

# Short targets over scripts/. `make` alone prints them.

.DEFAULT_GOAL := help
.PHONY: help run build test check engines sandboxes race lint fmt golden fuzz bench

help: ## print the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' Makefile

run: build ## play the bundled dataset: over 1,000 episodes, no key, no GPU, no network
	@scripts/need python3 git
	@scripts/demo

build: ## make bin/trajgen
	@scripts/need go
	@scripts/build

test: ## everything that CI checks: format, vet, floors, race detector, real datasets, crashes, DuckDB, the demo
	@scripts/need go gcc python3 git node npm sshd ip curl
	@scripts/check

check: test ## the same

engines: ## docker and podman against real engines, which it starts, as root
	@scripts/need go
	@scripts/check-engines

sandboxes: ## the sandbox suite against gVisor, whose program it builds first (2 minutes)
	@scripts/need go
	@scripts/sandboxes

race: ## the Go tests under the race detector
	@scripts/need go gcc python3 git sshd ip curl
	@REQUIRE_SANDBOXES=native,local,ssh,apptainer,singularity,modal,daytona go test -race ./...

lint: ## gofmt and vet
	@scripts/need go
	@scripts/lint

fmt: ## gofmt in place
	@gofmt -w $$(git ls-files '*.go')

golden: ## refresh the golden files; read the difference
	@go test ./registry/... ./tools/... ./outputs/... ./cmd/... -update

fuzz: ## each fuzz target for a minute (FUZZTIME=1m)
	@scripts/fuzz

bench: ## what sandboxes cost, then the Go benchmarks of the rest
	@scripts/need go python3
	@scripts/bench/sandbox
	@go test -run '^$$' -bench . -benchmem $$(go list ./... | grep -v /sandbox)

# Short targets over scripts/. `make` alone prints them.

.DEFAULT_GOAL := help
.PHONY: help run build test check demo sandboxes gvisor chaos leaks crashes mcp race lint fmt golden fuzz fuzz-tools bench benchmarks

help: ## print the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' Makefile

run: build ## play the bundled dataset: over 1,000 episodes, no key, no GPU, no network
	@scripts/need python3 git chromium
	@scripts/demo

build: ## make bin/trajgen
	@scripts/need go zstd
	@scripts/build

test: ## format, vet, floors, and the Go tests, with real datasets and crashes
	@scripts/need go python3 pip3 pytest git node npm sshd ip curl newuidmap rg pdftotext chromium espeak-ng zstd
	@scripts/check

demo: build ## the bundled dataset, whole; its files read by DuckDB and Arrow; OpenAI's client against the scripted server
	@scripts/need python3 git node npm chromium
	@scripts/check-demo

check: test lint race demo ## all of these, as CI does before the slow suites

sandboxes: ## the sandbox suite against every kind that runs here, container engines among them
	@scripts/need go python3 git sshd ip curl newuidmap
	@scripts/check-sandboxes

gvisor: ## the sandbox suite against gVisor, whose program it builds first (2 minutes)
	@scripts/need go
	@scripts/gvisor

chaos: ## kills a thousand runners at random moments; nothing may be left
	@scripts/need go
	@. scripts/flags; CHAOS_KILLS=1000 go test -vet=off -count=1 -timeout 30m -run TestKilledAtRandom -v ./sandbox/native

leaks: ## opens and closes five hundred browsers; nothing may be left
	@scripts/need go chromium
	@. scripts/flags; BROWSERS=500 go test -vet=off -count=1 -timeout 60m -run TestLeaks -v ./tools/browser

crashes: build ## kills some thousands of runs at random moments and resumes them (CRASH_STORIES=400); the rows must be the same
	@. scripts/flags; TRAJGEN_PROGRAM=$(CURDIR)/bin/trajgen CRASH_STORIES=$${CRASH_STORIES:-400} CRASH_SEED=$${CRASH_SEED:-1001} FAMILY_KILLS=50 \
		go test -vet=off -count=1 -timeout 120m -run 'TestCrashes|TestDisk|TestFamiliesKilled' -v ./cmd/trajgen

mcp: ## the official conformance suites against our MCP client (a minute; installs them and a Node of their own)
	@scripts/need go node npm
	@scripts/mcp/conformance/run

race: ## the Go tests under the race detector
	@scripts/need go gcc python3 pip3 pytest git node npm sshd ip curl newuidmap rg chromium espeak-ng zstd
	@scripts/race

lint: ## gofmt, vet and staticcheck
	@scripts/need go
	@scripts/lint

fmt: ## gofmt in place
	@gofmt -w $$(git ls-files '*.go')

golden: ## refresh the golden files; read the difference
	@go test $$(find . -name '*.golden*' -printf '%h\n' | sed 's,/testdata.*,,' | sort -u) -update

fuzz: ## each fuzz target for a minute (FUZZTIME=1m)
	@scripts/fuzz

fuzz-tools: ## those of what models write alone, on one processor: arguments, edits, patches, commands
	@FUZZ_WORKERS=1 scripts/fuzz FuzzCoerce FuzzRepair FuzzReplace FuzzV4A FuzzCheck

bench: build ## what episodes cost on this machine, beside the least that they can cost (a quarter to half an hour); bench.json
	@. scripts/flags; go build -tags embedguest,grpcnotrace -o bin/bench ./scripts/bench
	@bin/bench --out bench.json

benchmarks: ## what sandboxes cost, then the Go benchmarks of the rest, for benchstat
	@scripts/need go python3
	@scripts/bench/sandbox
	@scripts/bench/go

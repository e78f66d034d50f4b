# What there is to do here: make help.

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)
GO      ?= go
# The linter's version, for those who install it: .golangci.yml is written for it.
GOLANGCI_VERSION := v2.15.0

FUZZTIME ?= 30s
SOAKTIME ?= 10m
CASES    ?= 100000
REQUESTS ?= 1000000
SEED     ?= 1
CUTS     ?= 5000
KILLS    ?= 200

.DEFAULT_GOAL := help
.PHONY: help agents build run test bench bench-login bench-abuse bench-audit bench-hooks bench-growth bench-scale bench-search bench-snapshots bench-store bench-svcctl quality fuzz differ outside clients crash soak lint fmt tidy golden docs pictures samples package clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk 'BEGIN {FS = ":.*## "} {printf "  make %-15s %s\n", $$1, $$2}'

build: ## Build bin/svcd and bin/svcctl
	@CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./cmd/svcd ./cmd/svcctl

run: build ## Serve the sample projects on http://127.0.0.1:8080 (API_PORT=… for another port, DATA_DIR=… for other data)
	@sh scripts/run.sh

test: ## Vet, lint where the linter is installed, and run all tests on both stores
	@sh scripts/test.sh

bench: build ## Measure the service: requests per second, latency, CPU, start, memory (STORE_URI=mongodb://… for MongoDB)
	@$(GO) run ./bench -svcd bin/svcd $(BENCHFLAGS)

bench-login: build ## Measure what credentials cost a read, and what 500 garbage logins a second do to the p99 of reads
	@$(GO) run ./bench -what credentials -svcd bin/svcd $(BENCHFLAGS)
	@$(GO) run ./bench -what logins -svcd bin/svcd $(BENCHFLAGS)

bench-abuse: build ## Measure what one caller's most expensive queries do to the p99 of others' reads
	@$(GO) run ./bench -what abuse -svcd bin/svcd $(BENCHFLAGS)

bench-audit: build ## Measure what the audit log costs a write (STORE_URI=mongodb://… for MongoDB)
	@$(GO) run ./bench -what audit -svcd bin/svcd $(BENCHFLAGS)

bench-hooks: build ## Measure what scripts cost creates and lists, and runs of scripts alone
	@$(GO) run ./bench -what hooks -svcd bin/svcd $(BENCHFLAGS)
	@$(GO) test ./pkg/script -run '^$$' -bench .

bench-growth: build ## Measure how reads grow: a million records beside 10,000, facets, lookups (BENCHFLAGS='-records 100000' for fewer)
	@$(GO) run ./bench -what growth -svcd bin/svcd $(BENCHFLAGS)

bench-scale: build ## Measure 1,000 collections in 50 projects: start, reload, memory, resyncs (STORE_URI=mongodb://… for MongoDB)
	@$(GO) run ./bench -what scale -svcd bin/svcd $(BENCHFLAGS)

bench-search: build ## Measure searches of 100,000 records, and what indexes cost writes, memory and disk (STORE_URI=mongodb://… for MongoDB)
	@$(GO) run ./bench -what search -svcd bin/svcd $(BENCHFLAGS)

bench-snapshots: build ## Measure snapshots: time, room, writers meanwhile, memory with a million records (STORE_URI=mongodb://… for MongoDB)
	@$(GO) run ./bench -what snapshots -svcd bin/svcd $(BENCHFLAGS)

bench-svcctl: build ## Measure what svcctl takes of the time of a command (SVCCTL_SERVER, SVCCTL_ADMIN_TOKEN_FILE: a service that serves the sample blog)
	@sh scripts/latency.sh bin/svcctl

quality: ## Measure how good the modes of searches are (CRANFIELD=the folder of the Cranfield collection)
	@CRANFIELD=$(abspath $(CRANFIELD)) $(GO) test ./pkg/search/quality -run Cranfield -count=1 -v -timeout 60m

bench-store: ## Measure the embedded store beside bare Pebble, SQLite and MongoDB doing the same work
	@cd bench/store && $(GO) run . $(BENCHFLAGS)

fuzz: ## Ask two services that differ in what callers may not see REQUESTS (1000000) times the same, from SEED (new); then run every fuzz target for FUZZTIME (30s)
	@GO='$(GO)' REQUESTS=$(REQUESTS) SEED=$(if $(filter file,$(origin SEED)),,$(SEED)) sh scripts/fuzz.sh $(FUZZTIME)

differ: ## Compare the embedded store, pipelines and expressions with a real MongoDB on CASES (100000) random ones each, from SEED (1)
	@$(GO) test ./pkg/store/storetest/differ -run '^TestDiffer$$' -count=1 -timeout 0 -v -args -cases $(CASES) -seed $(SEED) -workers 2
	@$(GO) test ./pkg/mql/expr -run '^TestExpressionsAsServer$$' -count=1 -timeout 0 -v -args -expressions=$(CASES) -expressionseed=$(SEED)
	@$(GO) test ./pkg/mql/pipeline -run '^TestPipelinesAsServer$$' -count=1 -timeout 0 -v -args -pipelines=$(CASES) -pipelineseed=$(SEED)

outside: ## Run the suites of other projects that are in SUITES by the MongoDB endpoint (UPDATE=1 writes their table anew; RESULTS=… keeps results, and runs no suite whose results are there)
	@$(GO) test ./pkg/store/wire/outside -run '^TestOutside$$' -count=1 -timeout 0 -v -args -suites '$(abspath $(SUITES))' $(if $(RESULTS),-results '$(abspath $(RESULTS))') $(if $(UPDATE),-update)

clients: ## Have the clients of MongoDB that are in CLIENTS, or installed, do their everyday work by the endpoint
	@$(GO) test ./pkg/store/wire/outside -run '^Test(Pymongo|Node|Mongo)' -count=1 -v -args -clients '$(abspath $(CLIENTS))'

agents: ## Have the official MCP clients and the Inspector call every tool, and a generated TypeScript client work, and schemathesis hold the service against its OpenAPI (MCP_CLIENTS=… where they are installed)
	@GO='$(GO)' sh scripts/agents.sh

crash: ## Kill a process KILLS (200) times and cut the power CUTS (5000) times while the embedded store is written to; nothing may be lost
	CUTS=$(CUTS) KILLS=$(KILLS) $(GO) test -count=1 -v -timeout 2h -run '^TestR(1Kill|2PowerCut)$$' ./pkg/store/embedded

soak: ## Repeat the tests of the stores and of the doors, with the race detector, for SOAKTIME (10m)
	@GO='$(GO)' sh scripts/soak.sh $(SOAKTIME)

lint: ## Run golangci-lint (.golangci.yml)
	@command -v golangci-lint >/dev/null || { echo 'golangci-lint is not installed: go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)' >&2; exit 1; }
	golangci-lint run ./...

fmt: ## Format the code
	@if command -v golangci-lint >/dev/null; then golangci-lint fmt ./...; else gofmt -w $$(git ls-files '*.go'); fi

tidy: ## Bring go.mod and go.sum up to date
	$(GO) mod tidy

golden: docs ## Write the golden files of the tests anew; look at the difference before you commit it
	@pkgs=$$(grep -rlE 'flag\.Bool\("update"' --include='*_test.go' . | xargs -n1 dirname | sort -u); \
	if [ -n "$$pkgs" ]; then $(GO) test $$pkgs -update; fi

docs: ## Write docs/settings.md and docs/config.md from the code
	$(GO) test ./cmd/svcd -run '^TestSettingsDoc$$' -count=1 -args -update
	$(GO) test ./docs -run '^TestConfigDoc$$' -count=1 -args -update

pictures: ## Draw the pictures of terminals in docs/pictures anew, from what the programs show
	@mkdir -p docs/pictures && $(GO) test ./cli -run '^TestPictures$$' -count=1 -args -pictures '$(abspath docs/pictures)'

samples: ## Write the content of the sample projects anew, and their types of scripts
	$(GO) run ./scripts/samples projects
	$(GO) run ./cmd/svcctl project types projects/blog
	$(GO) run ./cmd/svcctl project types projects/shop

package: ## Make archives, deb, rpm and apk in dist, without publishing (ZIG='python3 -m ziglang' where zig is not in PATH; TARGETS=linux_amd64 for less)
	@GO='$(GO)' TARGETS='$(TARGETS)' sh scripts/package.sh

clean: ## Remove what was built (not ./data)
	rm -rf bin dist

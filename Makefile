# Lockstep. `make` lists what there is; `make demo` and `make test` need nothing before them.

SHELL         := bash
.SHELLFLAGS   := -euo pipefail -c
.DEFAULT_GOAL := help

GO        ?= go
BIN       := bin
CACHE     := .cache
VERSION   ?= $(shell git describe --tags --always --dirty --match 'v*' 2>/dev/null || echo dev)
LDFLAGS   := -s -w -X main.version=$(VERSION)
PLATFORMS ?= linux/amd64 linux/arm64 darwin/arm64 windows/amd64
# How often `make soak` repeats the tests, and how long the tests of one package may take.
ROUNDS    ?= 10
# How many inputs each fuzz test makes up in `make soak` (minutes), and how often the rounds together kill a process inside a sync.
FUZZ      ?= 300000
KILLS     ?= 50
# Numbers of applications that `make bench-full` measures.
SIZES     ?= 100 1000 5000 10000
# Beside how many objects that no application declares it measures 1,000 applications once more.
UNRELATED ?= 100000
TIMEOUT   ?= 45m

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: check-go
check-go:
	@dev/check-go

.PHONY: build
build: check-go ## Build bin/lockstep
	@dev/compile $(BIN)/lockstep ./cmd/lockstep -ldflags '$(LDFLAGS)'

.PHONY: cross
cross: check-go ## Build for every platform of PLATFORMS, into bin/
	@for p in $(PLATFORMS); do \
		os=$${p%/*} arch=$${p#*/}; ext=; [ $$os = windows ] && ext=.exe; \
		echo "build $$p"; \
		CGO_ENABLED=0 GOOS=$$os GOARCH=$$arch $(GO) build -trimpath -ldflags '$(LDFLAGS)' \
			-o $(BIN)/lockstep-$$os-$$arch$$ext ./cmd/lockstep; \
	done

# Compiled like lockstep rather than by go run: with other settings Go would compile every library a second time, and
# silently.
.PHONY: demo
demo: build ## Show the main job on a local cluster; Ctrl-C ends it
	@dev/compile $(BIN)/demo ./dev/demo
	@$(BIN)/demo --lockstep $(BIN)/lockstep

.PHONY: test
test: check-go ## Vet and test everything, with the race detector, against a real local cluster
	$(GO) run ./dev/test -timeout $(TIMEOUT)

.PHONY: soak
soak: check-go ## Repeat the tests ROUNDS times in random order, with KILLS kills inside syncs; fuzz each input FUZZ times
	LOCKSTEP_TEST_KILLS=$$(( ($(KILLS) + $(ROUNDS) - 1) / $(ROUNDS) )) $(GO) run ./dev/test -timeout $(TIMEOUT) -rounds $(ROUNDS) -shuffle -fuzz $(FUZZ)

.PHONY: bench
bench: check-go ## Measure 1,000 applications against the floor
	$(GO) run ./bench

.PHONY: bench-full
bench-full: check-go ## Measure every size of SIZES, and draw docs/cost.svg; takes hours
	@mkdir -p $(CACHE)/bench
	@for n in $(SIZES); do echo "bench: $$n applications"; $(GO) run ./bench -applications $$n -json $(CACHE)/bench/$$n.json; done
	@echo "bench: beside unrelated objects"; $(GO) run ./bench -only in-step,unrelated -unrelated $(UNRELATED)
	$(GO) run ./bench -plot docs/cost.svg $(SIZES:%=$(CACHE)/bench/%.json)

.PHONY: lint
lint: $(CACHE)/golangci-lint ## Run the linters; their first build takes minutes
	$(CACHE)/golangci-lint run ./...

$(CACHE)/golangci-lint: tools/lint/go.mod tools/lint/go.sum
	@mkdir -p $(CACHE)
	@echo "build golangci-lint (once)"
	cd tools/lint && $(GO) build -o ../../$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

.PHONY: generate
generate: check-go ## Write generated code, CRDs, docs/cli.md and docs/health.md anew
	$(MAKE) -C tools/gen
	LOCKSTEP_UPDATE=1 $(GO) test ./internal/cli ./internal/health -run TestReference

.PHONY: clean
clean: ## Remove what was built here; the cached local cluster stays
	rm -rf $(BIN) $(CACHE)

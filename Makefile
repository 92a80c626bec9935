# Holdfast. `make help` lists what there is.

SHELL := /bin/bash
GO ?= go

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOTESTSUM := gotest.tools/gotestsum@v1.13.0
BUF := github.com/bufbuild/buf/cmd/buf@v1.75.0

RUN_TESTS := $(GO) run $(GOTESTSUM) --format pkgname-and-test-fails

# Another version of Hadoop than the default: make test HADOOP=3.3.6 runs what needs
# a Hadoop on that one.
HADOOP ?=
export HOLDFAST_TEST_HADOOP := $(HADOOP)

# What is long has names of its own: see test/long.
NOT_LONG := -skip '^TestLong'

# Packages whose tests need no Hadoop, no framework and no browser, and those that need Hadoop.
UNIT_PACKAGES = $$($(GO) list -test -f '{{if .ForTest}}{{.ForTest}} {{join .Deps " "}}{{end}}' ./... \
	  | awk '{ tested[$$1] } /testcluster|pyenv|chromedp/ { real[$$1] } END { for (p in tested) if (!(p in real)) print p }')
HADOOP_PACKAGES = $$($(GO) list -test -f '{{if .ForTest}}{{.ForTest}} {{join .Deps " "}}{{end}}' ./... \
	  | awk '/testcluster/ { real[$$1] } END { for (p in real) print p }')

# Whole jobs take longest, so they begin, and the next longest beside them: much of
# their time goes into waiting. What is compiled is vetted by verify.
LONGEST_PACKAGES = ./test/e2e ./container ./hdfsckpt ./cmd/yarn-submit ./test/browser ./hdfsckpt/mount ./test/torture ./internal/hadoop/hdfs/write \
  ./am/yarn ./examples/pytorch-ddp ./hdfsckpt/store ./internal/hadoop/hdfs/erasuretest ./internal/hadoop/hdfs/topologytest ./test/zones \
  ./test/testcluster ./internal/hadoop/hdfs/transfer/clustertest ./internal/hadoop/delegation ./am/core ./runtime
TEST_PACKAGES = $(if $(HADOOP),$(HADOOP_PACKAGES),$(LONGEST_PACKAGES) ./...)

.DEFAULT_GOAL := help

##@ Use
.PHONY: help
help: ## this list
	@awk 'BEGIN { FS = ":.*## " } \
	  /^##@/ { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-z0-9-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## the one static binary, bin/yarn-submit
	@.ci/need go
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-s -w" -o bin/yarn-submit ./cmd/yarn-submit

.PHONY: demo
demo: build ## train on this machine, lose a parameter server, go on
	@.ci/need python3
	@$(GO) run ./examples/demo

.PHONY: demo-yarn
demo-yarn: build ## the same on a real YARN and HDFS, started for it
	@.ci/need python3 java mvn
	@$(GO) run ./examples/demo -yarn

.PHONY: cluster
cluster: ## keep a real YARN and HDFS up until Ctrl-C, to try things out
	@.ci/need go java mvn
	@$(GO) run ./test/testcluster/cmd

.PHONY: cluster-secure
cluster-secure: ## the same with Kerberos
	@.ci/need go java mvn krb5kdc kadmin.local kinit
	@$(GO) run ./test/testcluster/cmd -secure

##@ Work on it
.PHONY: test
test: ## everything but what is long, against real Hadoop daemons and real TensorFlow
	@.ci/need go java mvn python3 torch tar krb5kdc kadmin.local kinit kcm ip chromium
	$(RUN_TESTS) --packages "$(TEST_PACKAGES)" -- -p 4 -parallel 4 -vet=off $(NOT_LONG) -timeout 30m

.PHONY: test-long
test-long: ## what is long, in slices (SLICE=name: one of them; go run ./test/long -list prints them)
	@.ci/need go java mvn python3 torch tar krb5kdc kadmin.local kinit kcm ip chromium
	$(GO) run ./test/long $(if $(SLICE),-slice $(SLICE))

.PHONY: test-short
test-short: ## the packages whose tests need no Hadoop, no TensorFlow and no browser
	@.ci/need go
	$(GO) test -timeout 10m $(NOT_LONG) $(UNIT_PACKAGES)

.PHONY: race
race: ## test-short, and a job that loses a parameter server, under the race detector
	@.ci/need go gcc
	$(GO) test -race -timeout 30m $(NOT_LONG) $(UNIT_PACKAGES)
	$(GO) test -race -count 1 -timeout 10m -run '^TestTrainerLosesAParameterServer$$/^local$$' ./test/e2e

.PHONY: fuzz
fuzz: ## every fuzz target, 10 minutes in all (FUZZ_SECONDS=60: so many; FUZZ=REGEXP: those of that name)
	@.ci/need go
	@.ci/fuzz

.PHONY: vuln
vuln: ## known vulnerabilities in what the program calls (VULNDB: a mirror of the database)
	@.ci/need go
	@.ci/vuln

.PHONY: bench
bench: build ## compare with Hadoop's own tools and colinmarc/hdfs (half an hour and more; needs a quiet machine)
	@.ci/need java mvn python3
	@$(GO) run ./test/bench/cmd

.PHONY: faults
faults: build ## lose all that a job stands on under TensorFlow, alone and in pairs (long; as root)
	@.ci/need java mvn python3
	@$(GO) run ./test/faults/cmd -pairs 10

.PHONY: programs
programs: build ## run programs of many frameworks, and lose something of each (ONLY=NAME,...: some of them; long)
	@.ci/need java mvn python3 torch
	@$(GO) run ./test/programs/cmd $(if $(ONLY),-only $(ONLY))

.PHONY: pictures
pictures: ## take pictures of the pages and of top into dist/pictures, and those of the README
	@.ci/need go chromium
	@mkdir -p dist/pictures docs/pictures
	@$(GO) test ./test/browser -count=1 -pictures $(CURDIR)/dist/pictures
	@cp dist/pictures/overview.png docs/pictures/job.png
	@cp dist/pictures/top.png docs/pictures/top.png

.PHONY: verify
verify: ## formatting, vet, staticcheck, buf lint
	@.ci/need go
	@out=$$(gofmt -l .); if [ -n "$$out" ]; then echo "not formatted (make fix formats them):"; echo "$$out"; exit 1; fi
	$(GO) vet ./...
	$(GO) run $(STATICCHECK) ./...
	cd proto && $(GO) run $(BUF) lint

.PHONY: fix
fix: ## format what verify found unformatted
	gofmt -w .

.PHONY: proto
proto: ## generate Go from the .proto files
	for dir in $$(dirname $$(find . -name buf.gen.yaml)); do (cd $$dir && $(GO) run $(BUF) generate) || exit 1; done

.PHONY: docs
docs: ## write the tables of docs/options.md, docs/commands.md and docs/metrics.md anew
	$(GO) test ./client/spec ./cmd/yarn-submit ./am/metrics -run '^TestDocs' -update

.PHONY: release
release: ## dist/: binaries for amd64 and arm64, what is in them, checksums; builds twice and compares
	@.ci/need go git
	@.ci/release

.PHONY: clean
clean: ## remove what build and release made (the cached downloads stay)
	rm -rf bin dist

# Holdfast. `make help` lists what there is.

SHELL := /bin/bash
GO ?= go

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOTESTSUM := gotest.tools/gotestsum@v1.13.0

.DEFAULT_GOAL := help

##@ Use
.PHONY: help
help: ## this list
	@awk 'BEGIN { FS = ":.*## " } \
	  /^##@/ { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## the one static binary, bin/yarn-submit
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-s -w" -o bin/yarn-submit ./cmd/yarn-submit

##@ Work on it
.PHONY: test
test: ## everything, against real Hadoop daemons and real TensorFlow
	@.ci/need go java mvn python3 tar
	$(GO) run $(GOTESTSUM) --format pkgname-and-test-fails --rerun-fails=1 --rerun-fails-max-failures=5 \
	  --packages ./... -- -p 1 -timeout 40m

.PHONY: verify
verify: ## formatting, vet, staticcheck
	@.ci/need go
	@out=$$(gofmt -l .); if [ -n "$$out" ]; then echo "not formatted (make fix formats them):"; echo "$$out"; exit 1; fi
	$(GO) vet ./...
	$(GO) run $(STATICCHECK) ./...

.PHONY: fix
fix: ## format what verify found unformatted
	gofmt -w .

.PHONY: clean
clean: ## remove what build made (the cached downloads stay)
	rm -rf bin

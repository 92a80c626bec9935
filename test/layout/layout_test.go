// Package layout holds which packages may depend on which others.
package layout

import (
	"bytes"
	"encoding/json"
	"io"
	"os/exec"
	"strings"
	"testing"
)

// rooms says, for each package or tree of packages (ending in /...), which of
// our packages it may import. The most specific entry counts.
var rooms = map[string][]string{
	"cmd/yarn-submit":             {"..."},
	"cmd/yarn-submit/ckpt":        {"client", "client/checkpoints", "client/jobs", "client/terminal", "cmd/yarn-submit/cli", "hdfsckpt", "hdfsckpt/format", "hdfsckpt/inspect", "hdfsckpt/retain", "hdfsckpt/store", "hdfsckpt/tensor", "proto"},
	"cmd/yarn-submit/cli":         {"client", "client/cluster", "client/jobs", "client/jobs/logs", "client/terminal", "proto"},
	"cmd/yarn-submit/incontainer": {"am/...", "client", "container", "doctor/nodecheck", "hdfsckpt/store", "internal/...", "proto"},
	"cmd/yarn-submit/job":         {"client/...", "cmd/yarn-submit/cli", "internal/hadoop/conf", "proto"},
	"client":                      {"internal/hadoop/..."},
	"client/checkpoints":          {"client", "client/cluster", "client/jobs", "hdfsckpt/format", "hdfsckpt/inspect", "hdfsckpt/store"},
	"client/cluster":              {"client", "hdfsckpt/store", "internal/hadoop/...", "proto"},
	"client/jobs":                 {"client", "client/cluster", "client/terminal", "hdfsckpt/formats", "hdfsckpt/store", "internal/hadoop/...", "internal/jobtls", "proto", "runtime"},
	"client/jobs/logs":            {"client", "client/jobs", "hdfsckpt/store", "internal/logtimes", "proto"},
	"client/localfile":            {},
	"client/spec":                 {"client", "client/localfile", "internal/archive", "internal/hadoop/acl", "internal/hadoop/rpc", "internal/hadoop/yarn", "proto", "runtime", "runtime/framework", "runtime/interpreter"},
	"client/submit":               {"client", "client/cluster", "client/jobs", "client/localfile", "container/gpu", "hdfsckpt/store", "hdfsckpt/writers", "internal/hadoop/...", "internal/jobtls", "proto", "runtime"},
	"client/terminal":             {},
	"client/ui":                   {"am/web", "client", "client/checkpoints", "client/cluster", "client/jobs", "hdfsckpt/inspect", "internal/hadoop/conf", "proto"},
	"am":                          {"am/agents", "am/checkpoint", "am/core", "am/core/action", "am/core/event", "am/notify", "am/recovery", "am/server", "am/status/...", "hdfsckpt/store", "runtime", "proto", "internal/jobtls"},
	"am/agents":                   {"am/core", "am/core/action", "am/server", "proto", "runtime", "runtime/framework"},
	"am/checkpoint":               {"hdfsckpt", "hdfsckpt/format", "hdfsckpt/formats", "hdfsckpt/manifest", "hdfsckpt/store", "hdfsckpt/writers", "proto", "runtime"},
	"am/core":                     {"am/core/...", "proto"},
	"am/core/action":              {"proto"},
	"am/core/event":               {"am/core/pace"},
	"am/core/journal":             {"am/core/event", "am/core/nodes", "am/core/pace", "proto"},
	"am/core/nodes":               {},
	"am/core/reconcile":           {"am/core/event", "am/core/journal", "am/core/pace", "proto"},
	"am/core/pace":                {},
	"am/metrics":                  {"am/status", "proto"},
	"am/notify":                   {"proto"},
	"am/recovery":                 {"am/core/journal", "hdfsckpt", "hdfsckpt/store", "proto"},
	"am/server":                   {"internal/jobtls", "proto"},
	"am/status":                   {"am/core/...", "am/status/samples", "hdfsckpt/store", "proto"},
	"am/status/samples":           {"proto"},
	"am/yarn":                     {"am", "am/core/action", "am/core/event", "proto", "internal/hadoop/..."},
	"am/local":                    {"am", "am/core/action", "am/core/event", "proto", "internal/hadoop/token"},
	"am/web":                      {"am/web/drawing", "am/web/relay", "am/web/text", "client/spec", "client/terminal", "hdfsckpt/inspect", "hdfsckpt/store", "proto"},
	"am/web/access":               {"am/web"},
	"am/web/drawing":              {"am/web/text", "hdfsckpt/inspect", "proto"},
	"am/web/relay":                {},
	"am/web/text":                 {},
	"container":                   {"container/...", "hdfsckpt/store", "runtime", "runtime/framework", "runtime/tasklog", "runtime/tfevents", "proto", "internal/jobtls", "internal/nodump", "internal/ownlog", "internal/hadoop/conf"},
	"container/failure":           {"proto"},
	"container/gpu":               {"container/failure"},
	"container/launch":            {},
	"container/master":            {"hdfsckpt/mount", "hdfsckpt/store", "hdfsckpt/writers", "internal/jobtls", "proto"},
	"container/output":            {"hdfsckpt/store", "internal/logtimes", "proto", "runtime/tasklog"},
	"container/peers":             {"container/failure", "container/sandbox", "container/steer", "internal/hadoop/conf", "proto", "runtime", "runtime/framework"},
	"container/proctree":          {},
	"container/traffic":           {},
	"container/sandbox":           {"container/proctree", "container/steer"},
	"container/stage":             {"container/failure", "container/peers", "container/sandbox", "container/steer", "container/warm", "hdfsckpt/mount", "hdfsckpt/store", "hdfsckpt/writers", "internal/archive", "internal/hadoop/conf", "proto", "runtime", "runtime/framework"},
	"container/steer":             {},
	"container/warm":              {"container/proctree", "container/sandbox", "proto", "runtime"},
	"hdfsckpt":                    {"hdfsckpt/format", "hdfsckpt/formats", "hdfsckpt/manifest", "hdfsckpt/retain", "hdfsckpt/store", "hdfsckpt/tensor", "hdfsckpt/writers"},
	"hdfsckpt/inspect":            {"hdfsckpt", "hdfsckpt/format", "hdfsckpt/manifest", "hdfsckpt/retain", "hdfsckpt/store", "hdfsckpt/tensor"},
	"hdfsckpt/format":             {"hdfsckpt/format/look", "hdfsckpt/limit", "hdfsckpt/manifest", "hdfsckpt/store", "hdfsckpt/tensor"},
	"hdfsckpt/format/look":        {"hdfsckpt/limit", "hdfsckpt/store"},
	"hdfsckpt/format/onefile":     {"hdfsckpt/format", "hdfsckpt/format/look", "hdfsckpt/limit", "hdfsckpt/store"},
	"hdfsckpt/format/saves":       {"hdfsckpt/store"},
	"hdfsckpt/formats":            {"hdfsckpt/format", "hdfsckpt/format/look", "hdfsckpt/format/onefile", "hdfsckpt/format/saves", "hdfsckpt/formats/pytorch", "hdfsckpt/hdf5", "hdfsckpt/kerasfile", "hdfsckpt/limit", "hdfsckpt/ocdbt", "hdfsckpt/orbaxfile", "hdfsckpt/store", "hdfsckpt/tensor", "hdfsckpt/tfbundle"},
	"hdfsckpt/formats/pytorch":    {"hdfsckpt/format", "hdfsckpt/format/look", "hdfsckpt/format/onefile", "hdfsckpt/format/saves", "hdfsckpt/limit", "hdfsckpt/safetensors", "hdfsckpt/store", "hdfsckpt/torchfile"},
	"hdfsckpt/limit":              {},
	"hdfsckpt/zipdir":             {"hdfsckpt/limit"},
	"hdfsckpt/hdf5":               {"hdfsckpt/tensor"},
	"hdfsckpt/kerasfile":          {"hdfsckpt/hdf5", "hdfsckpt/limit", "hdfsckpt/zipdir"},
	"hdfsckpt/manifest":           {"hdfsckpt/limit", "hdfsckpt/store"},
	"hdfsckpt/retain":             {"hdfsckpt/format", "hdfsckpt/formats", "hdfsckpt/manifest", "hdfsckpt/store", "hdfsckpt/writers"},
	"hdfsckpt/writers":            {"hdfsckpt/store"},
	"hdfsckpt/mount":              {"hdfsckpt/formats", "hdfsckpt/mount/...", "hdfsckpt/retain", "hdfsckpt/store"},
	"hdfsckpt/mount/area":         {"hdfsckpt/store", "hdfsckpt/writers"},
	"hdfsckpt/mount/caller":       {},
	"hdfsckpt/mount/errno":        {"hdfsckpt/mount/gate"},
	"hdfsckpt/mount/gate":         {"hdfsckpt/store"},
	"hdfsckpt/tensor":             {},
	"hdfsckpt/tfbundle":           {"hdfsckpt/limit", "hdfsckpt/tensor", "hdfsckpt/tfbundle/wire"},
	"hdfsckpt/tfbundle/wire":      {},
	"hdfsckpt/torchfile":          {"hdfsckpt/limit", "hdfsckpt/tensor", "hdfsckpt/zipdir"},
	"hdfsckpt/safetensors":        {"hdfsckpt/tensor"},
	"hdfsckpt/ocdbt":              {"hdfsckpt/limit"},
	"hdfsckpt/orbaxfile":          {"hdfsckpt/ocdbt", "hdfsckpt/zarr"},
	"hdfsckpt/zarr":               {"hdfsckpt/tensor"},
	"hdfsckpt/store":              {"hdfsckpt/limit", "internal/hadoop/hdfs/...", "internal/hadoop/conf"},
	"hdfsckpt/store/storetest":    {"hdfsckpt/store"},
	"doctor":                      {"client", "client/cluster", "client/jobs", "client/submit", "doctor/check", "doctor/nodecheck", "hdfsckpt/store", "proto", "internal/hadoop/...", "internal/nodump"},
	"doctor/check":                {"container/gpu", "container/sandbox", "hdfsckpt/store", "runtime/frameworks"},
	"doctor/nodecheck":            {"container/gpu", "doctor/check", "hdfsckpt/store", "proto", "internal/hadoop/...", "internal/nodump"},
	"runtime":                     {"hdfsckpt/format", "hdfsckpt/formats", "proto", "runtime/framework", "runtime/frameworks", "runtime/interpreter", "runtime/tasklog"},
	"runtime/framework":           {"proto", "runtime/interpreter"},
	"runtime/frameworks":          {"proto", "runtime/framework", "runtime/interpreter"},
	"runtime/interpreter":         {},
	"runtime/tasklog":             {},
	"runtime/tfevents":            {"runtime/tasklog"},
	"proto":                       {},
	"internal/jobtls":             {},
	"internal/archive":            {},
	"internal/backoff":            {},
	"internal/logtimes":           {},
	"internal/mailbox":            {},
	"internal/ownlog":             {},
	"internal/nodump":             {},
	"internal/proc":               {},
	"internal/tcp":                {},
	"internal/hadoop/...":         {"internal/hadoop/..."},
	"internal/hadoop/conf":        {},
	"internal/hadoop/sasl":        {},
	"internal/hadoop/wire/...":    {"internal/hadoop/wire/..."},
	"test/ports":                  {},
	"test/pty":                    {},
	"test/silence":                {},
	"test/testcluster/...":        {"test/testcluster/...", "test/ports"},
	"test/pyenv/...":              {"test/pyenv/...", "test/testcluster/..."},
	"test/bench":                  {"test/testcluster"},
	"test/bench/jobs":             {"container/proctree", "internal/hadoop/conf", "internal/hadoop/yarn", "proto", "test/asuser", "test/bench", "test/faults", "test/ports", "test/pyenv", "test/testcluster/dist"},
	"test/bench/jobs/bare":        {"internal/hadoop/..."},
	"test/bench/files":            {"internal/hadoop/conf", "internal/hadoop/hdfs", "test/bench", "test/pyenv", "test/testcluster/..."},
	"test/bench/files/ours":       {"hdfsckpt/mount", "hdfsckpt/store", "internal/hadoop/conf", "internal/hadoop/hdfs"},
	"test/bench/cmd":              {"test/bench", "test/bench/files", "test/bench/jobs"},
	"test/scale":                  {"am", "am/core/action", "am/core/event", "am/recovery", "am/server", "am/status", "am/status/samples", "am/web", "hdfsckpt/inspect", "hdfsckpt/store", "internal/jobtls", "runtime", "proto"},
	"test/e2e/...":                {"..."},
	"test/torture":                {"..."},
	"test/zones":                  {"..."},
	"test/forbid":                 {},
	"test/sources":                {},
	"test/bound":                  {},
	"test/asuser":                 {"proto"},
	"test/joblogs":                {},
	"test/browser":                {"proto", "test/asuser", "test/pty", "test/testcluster"},
	"test/faults/...":             {"test/asuser", "test/joblogs", "test/testcluster/...", "test/pyenv", "hdfsckpt/store", "internal/hadoop/conf", "proto", "test/faults"},
	"test/programs/...":           {"hdfsckpt/inspect", "test/asuser", "test/joblogs", "test/testcluster/...", "test/pyenv", "proto", "test/programs"},
	"test/layout":                 {},
	"test/long":                   {"container/proctree", "test/programs", "test/testcluster/dist"},
	"test/mutation":               {},
	"examples/...":                {"..."},
}

// common are packages that import none of ours and that all but am/core and below may import.
var common = []string{"internal/backoff", "internal/mailbox", "internal/proc", "internal/tcp"}

func TestDependencies(t *testing.T) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "holdfast/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	dec := json.NewDecoder(bytes.NewReader(out))
	for {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := dec.Decode(&p); err == io.EOF {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(p.ImportPath, "holdfast/")
		allowed, ok := find(name)
		if !ok {
			t.Errorf("package %s is in no room: add it to the map above and to docs/structure.md", name)
			continue
		}
		for _, i := range p.Imports {
			dep, ours := strings.CutPrefix(i, "holdfast/")
			if ours && (!permits(allowed, dep) && (strings.HasPrefix(name, "am/core") || !permits(common, dep)) || isTest(dep) && !isTest(name)) {
				t.Errorf("%s imports %s, which its room may not", name, dep)
			}
		}
	}
}

// isTest reports whether a package is apparatus, which what ships must not import.
func isTest(name string) bool {
	return strings.HasPrefix(name, "test/") || strings.HasPrefix(name, "examples/")
}

// find gives the entry of a package: its own, or that of the nearest tree.
func find(name string) ([]string, bool) {
	if a, ok := rooms[name]; ok {
		return a, true
	}
	for tree := name; ; {
		if a, ok := rooms[tree+"/..."]; ok {
			return a, true
		}
		i := strings.LastIndexByte(tree, '/')
		if i < 0 {
			return nil, false
		}
		tree = tree[:i]
	}
}

func permits(allowed []string, dep string) bool {
	for _, a := range allowed {
		tree, isTree := strings.CutSuffix(a, "...")
		if dep == a || isTree && (tree == "" || strings.HasPrefix(dep+"/", tree)) {
			return true
		}
	}
	return false
}

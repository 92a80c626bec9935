package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"holdfast/proto"
	"holdfast/test/ports"
	"holdfast/test/testcluster"
)

// TestLongTheNodesProxy: where application masters go to the AMRMProxy of their node, as in a
// federation, the configuration that a job is submitted with says so
// (yarn.resourcemanager.scheduler.address), and the master registers there with the token
// that the proxy gave it.
func TestLongTheNodesProxy(t *testing.T) {
	daemons.enter(t)
	proxy := fmt.Sprintf("127.0.0.2:%d", ports.ForTest(t, 1)[0])
	c := testcluster.ForTest(t, testcluster.Options{DataNodes: 1, NodeManagers: 1, Conf: map[string]string{
		"yarn.nodemanager.amrmproxy.enabled": "true",
		"yarn.nodemanager.amrmproxy.address": proxy,
	}})
	dir := t.TempDir()
	must(t, os.CopyFS(dir, os.DirFS(c.ConfDir())))
	file := filepath.Join(dir, "yarn-site.xml")
	text, err := os.ReadFile(file)
	must(t, err)
	address := regexp.MustCompile(`(<name>yarn.resourcemanager.scheduler.address</name><value>)[^<]*`)
	must(t, os.WriteFile(file, address.ReplaceAll(text, []byte("${1}"+proxy)), 0o600))
	j := where{c}.startWith(t, append(os.Environ(), "HADOOP_CONF_DIR="+dir), t.TempDir(), "--worker", "2", "--", "true")
	j.end(long, proto.JobState_JOB_STATE_SUCCEEDED)
	// With the ResourceManager's own address, it is told what is to be done.
	j = where{c}.startWith(t, append(os.Environ(), "HADOOP_CONF_DIR="+c.ConfDir()), t.TempDir(), "--worker", "1", "--", "true")
	if s := j.end(long, proto.JobState_JOB_STATE_FAILED); !strings.Contains(s.Why, "yarn.nodemanager.amrmproxy.enabled") {
		t.Errorf("it is said: %q", s.Why)
	}
	log, err := os.ReadFile(filepath.Join(c.Dir(), "nm0", "log"))
	must(t, err)
	if !strings.Contains(string(log), "RegisteringAM Host") {
		t.Error("the NodeManager's proxy saw no application master")
	}
}

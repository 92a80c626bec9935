package yarn

import (
	"strings"
	"testing"

	hadoop "holdfast/internal/hadoop/yarn"
)

// Users see why a container has ended in tables and lines, not the log of a NodeManager.
func TestReasonsAreForPeople(t *testing.T) {
	const stamp = "[2026-11-25 10:00:00.000]"
	for name, c := range map[string]struct{ diagnostics, want string }{
		"killed": {stamp + "Container killed on request. Exit code is 137\n" + stamp + "Container exited with a non-zero exit code 137. \n" + stamp + "Killed by external signal\n",
			"Container killed on request. Exit code is 137; Killed by external signal"},
		"ended by itself": {stamp + "Exception from container-launch.\nContainer id: container_1_0001_01_000002\nExit code: 1\n\n" + stamp + "Container exited with a non-zero exit code 1. Error file: prelaunch.err.\nLast 4096 bytes of prelaunch.err :\nLast 4096 bytes of stderr :\n\n\n", ""},
		"its last words": {stamp + "Exception from container-launch.\nExit code: 127\n" + stamp + "Container exited with a non-zero exit code 127. Error file: prelaunch.err.\nLast 4096 bytes of stderr :\nbash: line 1: ./yarn-submit: cannot execute: required file not found\n",
			"bash: line 1: ./yarn-submit: cannot execute: required file not found"},
		"a file has changed": {stamp + "Failed to download resource { { hdfs://n:8020/u/a/bin/yarn-submit, 946684800001, FILE, null },pending,[(container_1_0001_01_000002)],13770041,DOWNLOADING} java.io.IOException: Resource hdfs://n:8020/u/a/bin/yarn-submit changed on src filesystem - expected: 1, was: 2\njava.io.IOException: Resource hdfs://n:8020/u/a/bin/yarn-submit changed on src filesystem - expected: 1, was: 2\n\tat org.apache.hadoop.yarn.util.FSDownload.copy(FSDownload.java:282)\n\t... 9 more\n",
			"Failed to download resource hdfs://n:8020/u/a/bin/yarn-submit Resource hdfs://n:8020/u/a/bin/yarn-submit changed on src filesystem - expected: 1, was: 2"},
		"released": {"Container released on a *lost* node", "Container released on a *lost* node"},
		"nothing":  {"", ""},
	} {
		if got := reason(c.diagnostics); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if got := reason(strings.Repeat("é", 1000)); len(got) > diagnosticMost+3 || !strings.HasSuffix(got, "é...") {
		t.Errorf("a long text becomes %q", got)
	}
}

// It does not depend on who was told first, the node or the ResourceManager.
func TestReasonsOfEndsAreTold(t *testing.T) {
	const said = "[2026-11-25 10:00:00.000]Container killed on request. Exit code is 137\n[2026-11-25 10:00:00.001]Container exited with a non-zero exit code 137. \n"
	d := quietDriver(t)
	d.attempt = 2
	a := d.s.add(container(2, 1))
	d.afterAllocate(allocated{answer: &hadoop.Answer{Completed: []hadoop.Completed{
		{ID: a.container.ID, Exit: exitForceKilled, Diagnostics: said}, {ID: container(7, 1).ID, Exit: exitForceKilled, Diagnostics: said},
	}}})
	expect(t, d.emitted(), "Diagnostics:Container killed on request. Exit code is 137}", "Diagnostics:Container killed on request. Exit code is 137}")
}

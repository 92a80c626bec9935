package yarn

import (
	"strings"
	"testing"
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
		"killed for its memory": {stamp + "Container [pid=4711,containerID=container_1_0001_01_000002] is running 17825792B beyond the 'PHYSICAL' memory limit. Current usage: 273.0 MB of 256 MB physical memory used; 2.5 GB of 537.6 MB virtual memory used. Killing container.\nDump of the process-tree for container_1_0001_01_000002 :\n\t|- PID PPID PGRPID SESSID CMD_NAME USER_MODE_TIME(MILLIS) SYSTEM_TIME(MILLIS) VMEM_USAGE(BYTES) RSSMEM_USAGE(PAGES) FULL_CMD_LINE\n\t|- 4711 4709 4711 4711 (bash) 0 0 9728000 704 /bin/bash -c ./yarn-submit agent \n\n" + stamp + "Container killed on request. Exit code is 143\n" + stamp + "Container exited with a non-zero exit code 143. \n",
			"Container [pid=4711,containerID=container_1_0001_01_000002] is running 17825792B beyond the 'PHYSICAL' memory limit. Current usage: 273.0 MB of 256 MB physical memory used; 2.5 GB of 537.6 MB virtual memory used. Killing container; Container killed on request. Exit code is 143"},
		"not to be started": {"Error launching a. Got exception: java.net.ConnectException: Call From rm to n1:45454 failed: java.net.ConnectException: Connection refused\n\tat org.apache.hadoop.net.NetUtils.wrapWithMessage(NetUtils.java:948)\nCaused by: java.net.ConnectException: Connection refused\n\t... 24 more\n",
			"Error launching a. Got exception: Call From rm to n1:45454 failed: Connection refused"},
		"released": {"Container released on a *lost* node", "Container released on a *lost* node"},
		"nothing":  {"", ""},
	} {
		if got := Reason(c.diagnostics); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if got := Reason(strings.Repeat("é", 1000)); len(got) > diagnosticMost+3 || !strings.HasSuffix(got, "é...") {
		t.Errorf("a long text becomes %q", got)
	}
}

//go:build executor

package e2e

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"holdfast/proto"
	"holdfast/test/testcluster"
	"holdfast/test/testcluster/kdc"
)

var containerExecutor = flag.String("container-executor", "", "`path` of Hadoop's native container-executor, installed on this machine for the group root; with users alice and bob")

// TestContainersOfTheirUsers trains under LinuxContainerExecutor: everything of a
// job runs as its user, and other users cannot look into it.
func TestContainersOfTheirUsers(t *testing.T) {
	if *containerExecutor == "" {
		t.Fatal("say where Hadoop's native program is: -container-executor FILE")
	}
	id := func(name string) *syscall.Credential {
		u, err := user.Lookup(name)
		must(t, err)
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		must(t, err)
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		must(t, err)
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	alice, bob := id(kdc.Alice), id(kdc.Bob)
	const executor = "yarn.nodemanager.linux-container-executor."
	c := secure(t, testcluster.Security{RPC: "privacy", Data: "privacy", AES: true}, testcluster.Options{Conf: map[string]string{
		"yarn.nodemanager.container-executor.class": "org.apache.hadoop.yarn.server.nodemanager.LinuxContainerExecutor",
		executor + "path":  *containerExecutor,
		executor + "group": "root",
	}})
	must(t, os.Chmod(c.Dir(), 0o711)) // others go through it to their own directories
	w := where{c}
	j := w.train(t, c.HDFS()+"/user/alice/logs", untilFinish, "--principal", kdc.Alice, "--keytab", c.KDC().Keytab(kdc.Alice))
	before := j.until(long, "all to run", running)
	j.untilCheckpoint(long, 1)

	pids := append(j.masters(), j.agents()...)
	for _, k := range before.Tasks {
		pids = append(pids, int(k.Pid))
	}
	for _, pid := range pids {
		info, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
		must(t, err)
		if uid := info.Sys().(*syscall.Stat_t).Uid; uid != alice.Uid {
			t.Errorf("process %d runs as user %d, and alice is %d", pid, uid, alice.Uid)
		}
	}
	dirs, err := filepath.Glob(filepath.Join(c.Dir(), "yarn/*/local/usercache/alice/appcache", j.id))
	must(t, err)
	keytabs := 0
	for _, dir := range dirs {
		must(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.Name() == proto.KeytabFile {
				keytabs++
			}
			return err
		}))
		list := exec.CommandContext(t.Context(), "ls", dir)
		list.SysProcAttr = &syscall.SysProcAttr{Credential: bob}
		if out, err := list.CombinedOutput(); err == nil || !strings.Contains(string(out), "Permission denied") {
			t.Errorf("bob looks into %s: %v\n%s", dir, err, out)
		}
	}
	if keytabs == 0 {
		t.Errorf("there is no keytab in %q", dirs)
	}

	j.killContainer("ps-1")
	after := j.whole("ps-1 to be back", before, "ps-1")
	j.goesOn()
	if _, stderr, code := w.call(t.Context(), "", "kill", j.id); code != 0 {
		t.Errorf("kill ended with %d: %s", code, stderr)
	}
	j.end(long, proto.JobState_JOB_STATE_KILLED)
	for _, k := range after.Tasks {
		if text := j.logs(k.Task); !strings.Contains(text, "step") && strings.HasPrefix(k.Task, "worker") {
			t.Errorf("%s said %q", k.Task, text)
		}
	}
}

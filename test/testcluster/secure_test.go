package testcluster_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/test/testcluster"
	"holdfast/test/testcluster/kdc"
)

// as runs one of Hadoop's clients as a user.
func as(t *testing.T, c *testcluster.Cluster, user string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	tickets, err := c.KDC().Tickets(ctx, user)
	if err != nil {
		t.Fatal(err)
	}
	cmd := c.HadoopCommand(ctx, args...)
	cmd.Env = append(cmd.Env, "KRB5CCNAME="+tickets)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestSecure has Hadoop's own clients meet every lock of a secure cluster.
func TestSecure(t *testing.T) {
	c := start(t, testcluster.Options{DataNodes: 1, NodeManagers: 1, Security: &testcluster.Security{
		RPC: "privacy", Data: "privacy", Encrypt: true, AES: true,
	}})
	local := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(local, []byte("hold fast\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := as(t, c, kdc.Alice, "fs", "-put", local, "file"); err != nil {
		t.Fatalf("alice writes: %v\n%s", err, out)
	}
	if out, err := as(t, c, kdc.Alice, "fs", "-cat", "/user/alice/file"); err != nil || !strings.Contains(out, "hold fast\n") {
		t.Errorf("alice reads: %v\n%s", err, out)
	}
	for user, want := range map[string]string{
		kdc.Bob:      "Permission denied: user=bob",
		kdc.Stranger: "User mallory@HOLDFAST.TEST (auth:KERBEROS) is not authorized for protocol",
	} {
		if out, err := as(t, c, user, "fs", "-cat", "/user/alice/file"); err == nil || !strings.Contains(out, want) {
			t.Errorf("%s reads alice's file: %v\n%s", user, err, out)
		}
	}
	if out, err := as(t, c, kdc.Alice, "distributedshell", "-jar", c.Jar("hadoop-yarn-applications-distributedshell"),
		"-shell_command", "true", "-num_containers", "1", "-container_memory", "64", "-master_memory", "256"); err != nil {
		t.Errorf("alice runs an application: %v\n%s", err, out)
	}
}

// TestKDC: a realm alone.
func TestKDC(t *testing.T) {
	c := start(t, testcluster.Options{KDCOnly: true})
	k := c.KDC()
	tickets, err := k.Tickets(t.Context(), kdc.Alice, "-l", "1h")
	if err != nil {
		t.Fatal(err)
	}
	list := exec.CommandContext(t.Context(), "klist", "-c", tickets)
	list.Env = append(os.Environ(), "KRB5_CONFIG="+k.Config())
	if out, err := list.CombinedOutput(); err != nil || !strings.Contains(string(out), "krbtgt/HOLDFAST.TEST@HOLDFAST.TEST") {
		t.Errorf("klist: %v\n%s", err, out)
	}
	if err := k.Admin(t.Context(), "addprinc -randkey carol", "ktadd -k "+k.Keytab("carol")+" carol"); err != nil {
		t.Fatal(err)
	}
	if err := k.Admin(t.Context(), "addprinc -randkey carol"); err == nil {
		t.Error("a principal is made twice")
	}
	dir := c.Dir()
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	gone(t, dir)
}

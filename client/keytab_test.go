package client

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"holdfast/hdfsckpt/store"
	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/rpc"
	"holdfast/internal/hadoop/yarn"
)

// Two YARNs may share an HDFS. What one does not know is not over.
func TestTheKeytabsOfAnotherYARNAreLeftAlone(t *testing.T) {
	dir := t.TempDir()
	home, err := store.NewLocal(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	keytab := filepath.Join(t.TempDir(), "keytab")
	if err := os.WriteFile(keytab, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	cluster := func(address string) *Cluster {
		cf := conf.New(map[string]string{"yarn.resourcemanager.address": address})
		rm, err := yarn.NewClient(cf, yarn.Options{User: "alice", Retry: rpc.Retry{Limit: time.Millisecond}, Timeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = rm.Close() })
		return &Cluster{conf: cf, rm: rm, user: "alice", keytab: keytab}
	}
	here, there := cluster("127.0.0.1:1"), cluster("127.0.0.1:2")
	j := &Job{ID: "application_1700000000000_0007", home: home, cluster: there}
	if _, err := j.bringKeytab(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := here.sweepKeytabs(t.Context(), home); err != nil { // asks nobody
		t.Error(err)
	}
	if err := there.sweepKeytabs(t.Context(), home); err == nil { // which is not there to be asked
		t.Error("nobody was asked after its own keytabs")
	}
	if _, err := home.Stat(t.Context(), j.keytab()); err != nil {
		t.Error(err)
	}
	if err := j.removeKeytab(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := home.Stat(t.Context(), j.keytab()); err == nil {
		t.Error("it is still there")
	}
}

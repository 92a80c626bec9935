package submit

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"holdfast/client/cluster"
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
	connected := func(address string) *cluster.Cluster {
		cf := conf.New(map[string]string{"yarn.resourcemanager.address": address})
		rm, err := yarn.NewClient(cf, yarn.Options{User: "alice", Retry: rpc.Retry{Limit: time.Millisecond}, Timeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = rm.Close() })
		return &cluster.Cluster{Conf: cf, RM: rm, User: "alice", Keytab: keytab}
	}
	here, there := connected("127.0.0.1:1"), connected("127.0.0.1:2")
	const job = "application_1700000000000_0007"
	if _, err := uploadKeytab(t.Context(), there, home, job); err != nil {
		t.Fatal(err)
	}
	if err := removeStaleKeytabs(t.Context(), here, home); err != nil { // asks nobody
		t.Error(err)
	}
	if err := removeStaleKeytabs(t.Context(), there, home); err == nil { // which is not there to be asked
		t.Error("nobody was asked after its own keytabs")
	}
	if _, err := home.Stat(t.Context(), there.KeytabFile(job)); err != nil {
		t.Error(err)
	}
	if err := there.RemoveKeytab(t.Context(), home, job); err != nil {
		t.Error(err)
	}
	if _, err := home.Stat(t.Context(), there.KeytabFile(job)); err == nil {
		t.Error("it is still there")
	}
}

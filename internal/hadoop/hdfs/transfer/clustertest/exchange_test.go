package clustertest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/store/storetest"
	"holdfast/internal/hadoop/conf"
)

// mode is a configuration of the daemons, and what clients get there.
type mode struct {
	name    string
	daemons map[string]string
	clients map[string]string // dfs.data.transfer.protection to what is negotiated
}

var full = flag.Bool("matrix", false, "every cipher, not only some")

// TestProtections: at each protection of RPC and of data, what this client
// writes is read by Hadoop's own, and the reverse.
func TestProtections(t *testing.T) {
	mode{"SASL with AES", settings(aes, "false", ""), map[string]string{
		"authentication": "authentication", "integrity": "integrity", "privacy": "privacy (AES/CTR/NoPadding)",
		"privacy,integrity": "privacy (AES/CTR/NoPadding)", "integrity,privacy": "integrity",
	}}.check(t)
}

func (m mode) check(t *testing.T) {
	become(t, m.daemons)
	dir, local := home+"/"+strings.ReplaceAll(m.name, " ", "-"), t.TempDir()
	want := content(7, 1<<20+4321)
	if err := os.WriteFile(filepath.Join(local, "java"), want, 0o644); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if out, err := asAlice(t.Context(), "fs", "-mkdir", dir); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := asAlice(t.Context(), "fs", "-put", filepath.Join(local, "java"), dir); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("Java wrote after %v", time.Since(begin))
	for data, negotiated := range m.clients {
		for _, rpc := range strings.Split(all, ",") {
			t.Run("RPC "+rpc+", data "+data, func(t *testing.T) {
				c := dial(t, map[string]string{"hadoop.rpc.protection": rpc, "dfs.data.transfer.protection": data, "dfs.blocksize": "524288"})
				c.write(t, fmt.Sprintf("%s/%s-%s", dir, rpc, data), want)
				same(t, "a file of Hadoop's", c.read(t, dir+"/java"), want)
				c.modes.only(t, negotiated)
			})
		}
	}
	begin = time.Now()
	if out, err := asAlice(t.Context(), "fs", "-get", dir, local); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("Java read after %v", time.Since(begin))
	files, err := filepath.Glob(filepath.Join(local, filepath.Base(dir), "*"))
	if err != nil || len(files) != 1+3*len(m.clients) {
		t.Fatalf("Hadoop's client sees %d files, %v", len(files), err)
	}
	for _, f := range files {
		got, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		same(t, filepath.Base(f), got, want)
	}
}

// TestStore: a checkpoint store of a container, which has a delegation token
// and no Kerberos, with everything private.
func TestStore(t *testing.T) {
	become(t, settings(aes, "false", ""))
	var roots atomic.Int64
	storetest.Run(t, func(t *testing.T) store.Store {
		c, err := conf.Load(cluster.ConfDir())
		if err != nil {
			t.Fatal(err)
		}
		c.Set("hadoop.rpc.protection", "privacy")
		c.Set("dfs.data.transfer.protection", "privacy")
		s, err := store.Open(t.Context(), fmt.Sprintf("%s%s/stores/%d", cluster.HDFS(), home, roots.Add(1)), c)
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}

package clustertest

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/test/testcluster/kdc"
)

// TestDataNodeKilled kills a DataNode in the middle of a private write: the new
// pipeline has a handshake of its own, and the block is copied to another
// DataNode with a token for that.
func TestDataNodeKilled(t *testing.T) {
	become(t, settings(aes, "false", ""))
	c := dial(t, map[string]string{"dfs.data.transfer.protection": "privacy", "dfs.blocksize": "67108864"})
	name, want := home+"/killed", content(3, 24<<20)
	f, err := c.Create(t.Context(), name, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	const piece = 1 << 20
	killed := 0
	for done := 0; done < len(want); done += piece {
		if done == 8*piece {
			if err := f.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			killed = holder(t)
			if err := cluster.Daemon(dataNode(killed)).Kill(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := f.Write(want[done : done+piece]); err != nil {
			t.Fatalf("after %d MiB: %v", done>>20, err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Daemon(dataNode(killed)).Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	local := filepath.Join(t.TempDir(), "copy")
	if out, err := asAlice(t.Context(), "fs", "-get", name, local); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got, err := os.ReadFile(local)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "after the loss of a DataNode", got, want)
	if !c.modes.heard("continues with 2 DataNodes") {
		t.Error("the lost DataNode was not replaced")
	}
	c.modes.only(t, "privacy ("+aes+")")
}

func dataNode(i int) string { return "dn" + string(rune('0'+i)) }

// holder finds a DataNode on which a block is being written.
func holder(t *testing.T) int {
	t.Helper()
	for i := range dataNodes {
		found, err := filepath.Glob(filepath.Join(cluster.Dir(), dataNode(i), "data/current/*/current/rbw/blk_*"))
		if err != nil {
			t.Fatal(err)
		}
		if len(found) > 0 {
			return i
		}
	}
	t.Fatal("no DataNode has a block that is being written")
	return 0
}

// TestNoProtectionHere: a client without the property is told of it.
func TestNoProtectionHere(t *testing.T) {
	become(t, settings(aes, "false", ""))
	c := dial(t, map[string]string{"dfs.data.transfer.protection": ""})
	f, err := c.Create(t.Context(), "/user/"+kdc.Alice+"/unprotected", 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = f.Write([]byte("x")); err == nil {
		err = f.Close()
	}
	const told = "set dfs.data.transfer.protection in this side's hdfs-site.xml"
	if err == nil || !strings.Contains(err.Error(), told) {
		t.Errorf("writing without protection: %v", err)
	}
	name := home + "/protected"
	dial(t, nil).write(t, name, []byte("x"))
	r, err := c.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	begin := time.Now()
	if _, err := r.ReadAt(make([]byte, 1), 0); err == nil || !strings.Contains(err.Error(), told) {
		t.Errorf("reading without protection: %v", err)
	}
	if took := time.Since(begin); took > 15*time.Second {
		t.Errorf("reading without protection fails after %s only", took)
	}
}

// TestKeysAreGone restarts all daemons while files are open, with which they
// forget the keys that block tokens and data encryption keys are made of: the
// client gets new ones.
func TestKeysAreGone(t *testing.T) {
	for _, m := range []struct {
		name    string
		daemons map[string]string
		want    string
	}{
		{"of block tokens", settings(aes, "false", ""), "privacy (" + aes + ")"},
		{"of data encryption", settings(aes, "true", "3des"), "encryption (" + aes + ")"},
	} {
		t.Run(m.name, func(t *testing.T) {
			become(t, m.daemons)
			c := dial(t, map[string]string{"dfs.data.transfer.protection": "privacy", "dfs.blocksize": "1048576"})
			dir := home + "/" + strings.ReplaceAll(t.Name(), "/", "-")
			want := content(4, 12<<20)
			c.write(t, dir+"-read", want)
			r, err := c.Open(t.Context(), dir+"-read")
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			begun := make([]byte, 100)
			if _, err := r.ReadAt(begun, 0); err != nil {
				t.Fatal(err)
			}
			f, err := c.Create(t.Context(), dir+"-write", 0o644)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Write(want[:4<<20]); err != nil { // whole blocks
				t.Fatal(err)
			}
			if err := f.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := cluster.Reconfigure(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			rest, err := io.ReadAll(io.NewSectionReader(r, 100, r.Size()))
			if err != nil {
				t.Fatal(err)
			}
			same(t, "a file that was open", append(begun, rest...), want)
			if !c.modes.heard("asking for new block access tokens") && m.want != "encryption ("+aes+")" {
				t.Error("no token was refused: this test tests nothing")
			}
			if _, err := f.Write(want[4<<20:]); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			same(t, "a file that was being written", c.read(t, dir+"-write"), want)
			c.modes.only(t, m.want)
		})
	}
}

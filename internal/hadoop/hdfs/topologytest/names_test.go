package topologytest

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/internal/hadoop/hdfs"
	"holdfast/test/testcluster"
)

const byName = "dfs.client.use.datanode.hostname"

// TestLongDataNodesByName: DataNodes that do not listen on the address from which they have
// registered are written to and read from by their names; without the setting, the error names
// it. Hadoop's own client agrees.
func TestLongDataNodesByName(t *testing.T) {
	// They call the NameNode from 127.0.0.1, where nothing listens on their ports. A name that
	// needs no resolver is good enough.
	const name = "127.0.0.77"
	cluster := testcluster.ForTest(t, testcluster.Options{HDFSOnly: true, DataNodes: 2, Conf: map[string]string{
		"dfs.datanode.hostname": name,
		"dfs.datanode.address":  name + ":0",
		// The first DataNode of a pipeline calls the second.
		"dfs.datanode.use.datanode.hostname": "true",
		byName:                               "true",
		"dfs.client.block.write.replace-datanode-on-failure.enable": "false",
	}})
	c := load(t, cluster.ConfDir())
	read := func(h *hdfs.Client, name string) ([]byte, error) {
		t.Helper()
		r, err := h.Open(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		return io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
	}

	want := bytes.Repeat([]byte("by name "), 1<<15)
	c.Set(byName, "true")
	h := connect(t, c)
	write(t, h, "/user/ours", want)
	if got, err := read(h, "/user/ours"); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes are read back of %d, %v", len(got), len(want), err)
	}
	local := filepath.Join(t.TempDir(), "theirs")
	if err := os.WriteFile(local, want, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.Hadoop(t.Context(), "fs", "-put", local, "/user/theirs"); err != nil {
		t.Fatal(err)
	}
	if got, err := read(h, "/user/theirs"); err != nil || !bytes.Equal(got, want) {
		t.Errorf("of what Hadoop's client has written, %d bytes are read of %d, %v", len(got), len(want), err)
	}

	c.Set(byName, "false")
	h = connect(t, c)
	_, reading := read(h, "/user/ours")
	f, writing := h.Create(t.Context(), "/user/never", 0o644)
	if writing == nil {
		if _, writing = f.Write(want); writing == nil {
			writing = f.Close()
		}
	}
	for what, err := range map[string]error{"reading": reading, "writing": writing} {
		if err == nil {
			t.Errorf("%s at the addresses of the DataNodes works", what)
			continue
		}
		t.Logf("%s: %v", what, err)
		for _, text := range []string{"127.0.0.1:", "connection refused", name, byName + " to true"} {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("the error of %s does not say %q", what, text)
			}
		}
	}
}

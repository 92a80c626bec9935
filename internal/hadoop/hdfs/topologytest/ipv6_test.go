package topologytest

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"holdfast/internal/hadoop/yarn"
	"holdfast/test/testcluster"
)

// TestIPv6: a NameNode, DataNodes and a ResourceManager that listen on ::1 alone are called by
// that address, and DataNodes by the one that the NameNode has of them.
func TestIPv6(t *testing.T) {
	cluster := testcluster.ForTest(t, testcluster.Options{DataNodes: 2, NodeManagers: 1, IPv6: true, Conf: map[string]string{
		"dfs.replication": "2",
		// A DataNode takes another's address apart at the first colon (NetUtils.createSocketAddr).
		"dfs.datanode.use.datanode.hostname": "true",
	}})
	c := load(t, cluster.ConfDir())
	for _, key := range []string{"fs.defaultFS", "yarn.resourcemanager.address"} {
		address := strings.Replace(c.Get(key), testcluster.IPv6Host, "[::1]", 1)
		if !strings.Contains(address, "[::1]:") {
			t.Fatalf("%s is %q", key, c.Get(key))
		}
		c.Set(key, address)
	}
	h := connect(t, c)
	want := bytes.Repeat([]byte("by IPv6 "), 1<<15)
	write(t, h, "/user/ours", want)
	r, err := h.Open(t.Context(), "/user/ours")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, err := io.ReadAll(io.NewSectionReader(r, 0, r.Size())); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes are read back of %d, %v", len(got), len(want), err)
	}
	copies, err := cluster.Hadoop(t.Context(), "fs", "-stat", "%r %b", "/user/ours")
	if err != nil || strings.TrimSpace(copies) != "2 262144" {
		t.Errorf("Hadoop's client says of the file's copies and length: %q, %v", copies, err)
	}

	rm, err := yarn.NewClient(c, yarn.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer rm.Close()
	nodes, err := rm.Nodes(t.Context())
	if err != nil || len(nodes) != 1 || nodes[0].ID.Host != testcluster.IPv6Host || !nodes[0].Running() {
		t.Errorf("the ResourceManager has the nodes %+v, %v", nodes, err)
	}
	if err := rm.CheckQueue(t.Context(), "default"); err != nil {
		t.Error(err)
	}
	if _, _, err := rm.NewApplication(t.Context()); err != nil {
		t.Error(err)
	}
	for _, at := range []string{cluster.NameNodeWeb(), cluster.RMWeb()} {
		resp, err := http.Get("http://" + at + "/jmx?qry=java.lang:type=Runtime")
		if err != nil {
			t.Error(err)
			continue
		}
		resp.Body.Close()
		if !strings.HasPrefix(at, "[::1]:") || resp.StatusCode != http.StatusOK {
			t.Errorf("http://%s answers %s", at, resp.Status)
		}
	}
}

package topologytest

import (
	"bytes"
	"io"
	"testing"
	"time"

	"holdfast/test/testcluster"
)

// TestObserver: an observer that is asked first refers to the active NameNode, and is
// not taken for a broken one. (It is not read from: what others have just closed
// would not be there yet.)
func TestObserver(t *testing.T) {
	cluster := testcluster.ForTest(t, testcluster.Options{HDFSOnly: true, DataNodes: 1, Standby: true, Conf: map[string]string{
		"dfs.replication": "1",
		// What Hadoop's documentation demands for observers: without it they answer
		// anybody with what they know.
		"dfs.namenode.state.context.enabled": "true",
	}})
	if _, err := cluster.Hadoop(t.Context(), "haadmin", "-transitionToObserver", "nn1"); err != nil {
		t.Fatal(err)
	}
	if out, err := cluster.Hadoop(t.Context(), "haadmin", "-getServiceState", "nn1"); err != nil || !bytes.Contains([]byte(out), []byte("observer")) {
		t.Fatalf("nn1 is %s, %v", out, err)
	}
	c := load(t, cluster.ConfDir())
	c.Set("dfs.ha.namenodes.holdfast", "nn1,nn")
	c.Set("dfs.client.failover.proxy.provider.holdfast", "org.apache.hadoop.hdfs.server.namenode.ha.ObserverReadProxyProvider")
	h := connect(t, c)
	began := time.Now()
	if _, err := h.Stat(t.Context(), "/user"); err != nil { // the first call, that a NameNode may answer which is not active
		t.Fatal(err)
	}
	for i := range 5 {
		name := "/user/file" + string(rune('a'+i))
		want := []byte("content of " + name)
		write(t, h, name, want)
		if st, err := h.Stat(t.Context(), name); err != nil || st.Size != int64(len(want)) {
			t.Fatalf("%s has just been closed, and has %d bytes, %v", name, st.Size, err)
		}
		r, err := h.Open(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%q, %v", got, err)
		}
		r.Close()
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
}

package write

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	wire "holdfast/internal/hadoop/wire/hdfs"
)

// sickAndWell writes to a pipeline of two DataNodes.
func sickAndWell(sick *fakeDN) *Client {
	nn := &fakeNN{nodes: []*wire.DatanodeInfoProto{dn("sick", 1), dn("well", 2)}}
	return New(nn, Options{Replication: 2, Dial: dialTo(map[string]*fakeDN{"sick": sick, "well": {acks: true, reads: true, answers: true}})})
}

// TestADataNodeThatAcksNothingIsReplaced: a DataNode whose process answers and whose block writer hangs (a sick disk) is left after
// the time that one may take for an ack: 60 s and 5 s for each DataNode.
func TestADataNodeThatAcksNothingIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := sickAndWell(&fakeDN{reads: true, answers: true})
		f, err := c.Create(t.Context(), "/f", 0o644, false)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, err = f.Write(make([]byte, 1<<20))
		if err == nil {
			err = f.Close()
		}
		t.Logf("after %s: %v", time.Since(began), err)
		if err != nil || time.Since(began) > 2*time.Minute {
			t.Error("the DataNode that hangs was not replaced")
		}
		_ = f.Abort()
	})
}

// TestAFlushPastADataNodeThatAcksNothing: so it is with a flush, as of an event file, while which
// heartbeats are sent.
func TestAFlushPastADataNodeThatAcksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := sickAndWell(&fakeDN{reads: true, answers: true})
		f, err := c.Create(t.Context(), "/f", 0o644, false)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute) // store.flushLimit
		defer cancel()
		_, _ = f.Write([]byte("an event"))
		if err = f.Flush(ctx); err != nil {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		_ = f.Abort()
	})
}

// TestTheSenderDoesNotOutwaitTheProbe: one that answers nothing at all, and takes no bytes, is found by a probe after 5 s.
func TestTheSenderDoesNotOutwaitTheProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := sickAndWell(&fakeDN{})
		f, err := c.Create(t.Context(), "/f", 0o644, false)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, err = f.Write(make([]byte, 1<<20))
		if err == nil {
			err = f.Close()
		}
		t.Logf("after %s: %v", time.Since(began), err)
		if err != nil || time.Since(began) > 30*time.Second {
			t.Error("the sender waits on after the DataNode was found to be silent")
		}
		_ = f.Abort()
	})
}

// TestAFlushAtABlocksEdgeIsVisible: the NameNode knows the length of a block that is full, though no
// other one has been begun.
func TestAFlushAtABlocksEdgeIsVisible(t *testing.T) {
	nn := &fakeNN{nodes: []*wire.DatanodeInfoProto{dn("well", 2)}}
	c := New(nn, Options{Replication: 1, BlockSize: 1 << 20, Dial: dialTo(map[string]*fakeDN{"well": {acks: true, reads: true, answers: true}})})
	f, err := c.Create(t.Context(), "/f", 0o644, false)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Abort()
	for _, n := range []int{1000, 1<<20 - 1000} {
		if _, err := f.Write(make([]byte, n)); err != nil {
			t.Fatal(err)
		}
		if err := f.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := nn.visible(); got != f.Length() {
			t.Errorf("flushed are %d bytes, and the NameNode tells a reader of %d", f.Length(), got)
		}
	}
}

// TestBlocksEndOnTheDisks: after SyncEnds, each block that ends is on the disks, whatever was flushed.
func TestBlocksEndOnTheDisks(t *testing.T) {
	d := &fakeDN{acks: true, reads: true, answers: true}
	c := New(&fakeNN{nodes: []*wire.DatanodeInfoProto{dn("well", 2)}}, Options{Replication: 1, BlockSize: 1 << 20, Dial: dialTo(map[string]*fakeDN{"well": d})})
	for _, want := range []int{0, 3} {
		f, err := c.Create(t.Context(), "/f", 0o644, false)
		if err != nil {
			t.Fatal(err)
		}
		if want > 0 {
			f.SyncEnds()
		}
		if _, err := f.Write(make([]byte, 2<<20+1)); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if got := int(d.synced.Load()); got != want {
			t.Errorf("of 3 blocks %d were written to the disk, want %d", got, want)
		}
	}
}

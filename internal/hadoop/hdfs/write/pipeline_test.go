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

// TestALateAck: an ack that comes late, or of which a part does, is taken, and the pipeline stays.
func TestALateAck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nn := &fakeNN{nodes: []*wire.DatanodeInfoProto{dn("late", 1), dn("well", 2)}}
		late := &fakeDN{acks: true, reads: true, answers: true, pause: answerLimit + time.Second}
		c := New(nn, Options{Replication: 2, Dial: dialTo(map[string]*fakeDN{"late": late, "well": {acks: true, reads: true, answers: true}})})
		f, err := c.Create(t.Context(), "/f", 0o644, false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = f.Write([]byte("an event")); err == nil {
			err = f.Flush(t.Context())
		}
		if err != nil || nn.stamp != 1 {
			t.Errorf("the pipeline was built %d times: %v", nn.stamp, err)
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

// onDisks writes to two DataNodes, of which first is the first of the pipeline.
func onDisks(first *fakeDN) (*Client, *fakeDisks) {
	disks := &fakeDisks{}
	first.acks, first.reads, first.answers, first.disks = true, true, true, disks
	second := &fakeDN{acks: true, reads: true, answers: true, endless: first.endless, disks: disks}
	nn := &fakeNN{nodes: []*wire.DatanodeInfoProto{dn("first", 1), dn("second", 2)}}
	return New(nn, Options{Replication: 2, BlockSize: 1 << 20, Dial: dialTo(map[string]*fakeDN{"first": first, "second": second})}), disks
}

// TestBlocksEndOnTheDisks: after SyncEnds, each block that ends is on the disks, whatever was
// flushed, and though the connection ends with the block's last packet: what tells the DataNodes
// the end in another way does not reach their disks.
func TestBlocksEndOnTheDisks(t *testing.T) {
	for _, endless := range []bool{false, true} {
		for _, syncs := range []bool{false, true} {
			c, disks := onDisks(&fakeDN{endless: endless})
			f, err := c.Create(t.Context(), "/f", 0o644, false)
			if err != nil {
				t.Fatal(err)
			}
			if syncs {
				f.SyncEnds()
			}
			if _, err = f.Write(make([]byte, 1<<20+1)); err == nil {
				err = f.Flush(t.Context())
			}
			if err == nil {
				_, err = f.Write(make([]byte, 1<<20))
			}
			if err == nil {
				err = f.Close()
			}
			if err != nil {
				t.Fatal(err)
			}
			want := int64(0)
			if syncs {
				want = f.Length()
			}
			if got, synced := disks.sizes(); got != f.Length() || synced != want {
				t.Errorf("connections end with blocks %v: of %d bytes the DataNodes have %d, and %d on their disks, want %d", endless, f.Length(), got, synced, want)
			}
		}
	}
}

// TestSyncThoughADataNodeFails: those that are left have the bytes already, but not on their
// disks; what is sent again brings them nothing, and they sync nothing for it.
func TestSyncThoughADataNodeFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := &fakeDN{}
		first.failsSync.Store(true)
		c, disks := onDisks(first)
		f, err := c.Create(t.Context(), "/f", 0o644, false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = f.Write(make([]byte, 1000)); err == nil {
			err = f.Drain(t.Context())
		}
		if err == nil {
			_, err = f.Write(make([]byte, 1000))
		}
		if err == nil {
			err = f.Sync(t.Context())
		}
		if _, synced := disks.sizes(); err != nil || synced != f.Length() {
			t.Errorf("after a sync of %d bytes %d are on the disks: %v", f.Length(), synced, err)
		}
		_ = f.Abort()
	})
}

// TestADrainAtABlocksEdge: what was drained before, up to a block's edge, is visible after a flush, and
// on the disks after a sync, as anywhere else in a block.
func TestADrainAtABlocksEdge(t *testing.T) {
	for _, syncs := range []bool{false, true} {
		disks := &fakeDisks{}
		nn := &fakeNN{nodes: []*wire.DatanodeInfoProto{dn("well", 2)}}
		well := &fakeDN{acks: true, reads: true, answers: true, disks: disks}
		c := New(nn, Options{Replication: 1, BlockSize: 1 << 20, Dial: dialTo(map[string]*fakeDN{"well": well})})
		f, err := c.Create(t.Context(), "/f", 0o644, false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = f.Write(make([]byte, 1<<20)); err == nil {
			err = f.Drain(t.Context())
		}
		if err == nil && syncs {
			err = f.Sync(t.Context())
		} else if err == nil {
			err = f.Flush(t.Context())
		}
		if got := nn.visible(); err != nil || got != f.Length() {
			t.Errorf("flushed are %d bytes, and the NameNode tells a reader of %d: %v", f.Length(), got, err)
		}
		if _, synced := disks.sizes(); syncs && synced != f.Length() {
			t.Errorf("after a sync of %d bytes %d are on the disks", f.Length(), synced)
		}
		if _, err = f.Write([]byte("more")); err == nil {
			err = f.Close()
		}
		if got := nn.visible(); err != nil || got != f.Length() {
			t.Errorf("%d bytes were written, and there are %d: %v", f.Length(), got, err)
		}
	}
}

// TestASyncAtABlocksEdge: the first sync of a file reaches the block that has just become full.
func TestASyncAtABlocksEdge(t *testing.T) {
	c, disks := onDisks(&fakeDN{})
	f, err := c.Create(t.Context(), "/f", 0o644, false)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Abort()
	if _, err = f.Write(make([]byte, 1<<20)); err == nil {
		err = f.Sync(t.Context())
	}
	if _, synced := disks.sizes(); err != nil || synced != f.Length() {
		t.Errorf("after a sync of %d bytes %d are on the disks: %v", f.Length(), synced, err)
	}
}

package store

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/hdfs"
)

// TestTheLastStepWaitsForTheNameNode: what has been uploaded waits for its name longer
// than other calls wait, whether the name is free or taken.
func TestTheLastStepWaitsForTheNameNode(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nameNode := "hdfs://" + l.Addr().String()
	if err := l.Close(); err != nil { // from now on it refuses connections
		t.Fatal(err)
	}
	for name, rename := range map[string]func(s *hdfsStore, ctx context.Context, from, to string) error{
		"a name that may be taken": (*hdfsStore).Rename,
		"a free name":              (*hdfsStore).RenameNew,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, err := hdfs.New(nameNode, conf.New(nil), hdfs.Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				s := &hdfsStore{c: c, uri: nameNode + "/s", root: "/s"}
				began := time.Now()
				if err := rename(s, t.Context(), "a", "b"); err == nil {
					t.Fatal("it was renamed without a NameNode")
				}
				if took := time.Since(began); took < renameLimit-10*time.Second || took > renameLimit+10*time.Second {
					t.Errorf("it fails after %s, and has %s", took, renameLimit)
				}
			})
		})
	}
}

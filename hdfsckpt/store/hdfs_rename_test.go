package store

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/hdfs"
	"holdfast/internal/hadoop/hdfs/write"
	"holdfast/internal/hadoop/wire/common"
	wire "holdfast/internal/hadoop/wire/hdfs"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// leaving is a NameNode that has files created and completed, until it goes away.
type leaving struct {
	t testing.TB
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
}

func newLeaving(t testing.TB) *leaving {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &leaving{t: t, Listener: l}
	var serving sync.WaitGroup
	t.Cleanup(func() { n.leave(); serving.Wait() })
	serving.Go(func() {
		for {
			c, err := n.Accept()
			if err != nil {
				return
			}
			n.mu.Lock()
			n.conns = append(n.conns, c)
			n.mu.Unlock()
			serving.Go(func() { n.serve(c) })
		}
	})
	return n
}

// leave refuses connections from now on, and ends those that there are.
func (n *leaving) leave() {
	n.Close()
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.conns {
		c.Close()
	}
}

// serve answers calls (package rpc says how they look).
func (n *leaving) serve(c net.Conn) {
	if _, err := io.ReadFull(c, make([]byte, 7)); err != nil { // what a connection begins with
		return
	}
	for {
		var length [4]byte
		if _, err := io.ReadFull(c, length[:]); err != nil {
			return
		}
		b := make([]byte, binary.BigEndian.Uint32(length[:]))
		if _, err := io.ReadFull(c, b); err != nil {
			return
		}
		header, begin := protowire.ConsumeBytes(b)
		request, _ := protowire.ConsumeBytes(b[max(begin, 0):])
		h, m := &common.RpcRequestHeaderProto{}, &common.RequestHeaderProto{}
		if err := proto.Unmarshal(header, h); err != nil {
			n.t.Error(err)
			return
		}
		if h.GetCallId() < 0 {
			continue // a ping, or who calls
		}
		if err := proto.Unmarshal(request, m); err != nil {
			n.t.Error(err)
			return
		}
		var answer proto.Message
		switch m.GetMethodName() {
		case "create":
			answer = &wire.CreateResponseProto{Fs: &wire.HdfsFileStatusProto{
				FileType: wire.HdfsFileStatusProto_IS_FILE.Enum(), Path: []byte{}, Length: proto.Uint64(0), FileId: proto.Uint64(7),
				Permission: &wire.FsPermissionProto{Perm: proto.Uint32(0o644)}, Owner: proto.String(""), Group: proto.String(""),
				ModificationTime: proto.Uint64(0), AccessTime: proto.Uint64(0),
			}}
		case "complete":
			answer = &wire.CompleteResponseProto{Result: proto.Bool(true)}
		default:
			n.t.Errorf("it was not to be asked for %s", m.GetMethodName())
			return
		}
		var packet []byte
		for _, part := range []proto.Message{&common.RpcResponseHeaderProto{
			CallId: proto.Uint32(uint32(h.GetCallId())), Status: common.RpcResponseHeaderProto_SUCCESS.Enum(), ClientId: h.GetClientId(),
		}, answer} {
			body, err := proto.Marshal(part)
			if err != nil {
				n.t.Error(err)
				return
			}
			packet = protowire.AppendBytes(packet, body)
		}
		if _, err := c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(packet))), packet...)); err != nil {
			return
		}
	}
}

// TestTheLastStepWaitsForTheNameNode: what has been uploaded waits for the NameNode longer
// than other calls wait: for the end of its data, and for its name, whether that is free or
// taken.
func TestTheLastStepWaitsForTheNameNode(t *testing.T) {
	// Each is done with the NameNode until it leaves, and returns what is left to do.
	for name, prepare := range map[string]func(ctx context.Context, s *hdfsStore) (func() error, error){
		"a name that may be taken": func(ctx context.Context, s *hdfsStore) (func() error, error) {
			return func() error { return s.Rename(ctx, "a", "b") }, nil
		},
		"a free name": func(ctx context.Context, s *hdfsStore) (func() error, error) {
			return func() error { return s.RenameNew(ctx, "a", "b") }, nil
		},
		"the name at its end": func(ctx context.Context, s *hdfsStore) (func() error, error) {
			w, err := s.Create(ctx, "a", 0o644)
			if err != nil {
				return nil, err
			}
			return w.Close, w.(*hdfsWriter).file.Close() // but for the name, it is there
		},
		"the end": func(ctx context.Context, s *hdfsStore) (func() error, error) {
			w, err := s.Stage(ctx, "a", 0o644)
			if err != nil {
				return nil, err
			}
			return w.Close, nil
		},
		"a block": func(ctx context.Context, s *hdfsStore) (func() error, error) {
			w, err := s.Stage(ctx, "a", 0o644)
			if err != nil {
				return nil, err
			}
			return func() error {
				if _, err := w.Write([]byte("content")); err != nil {
					t.Error(err)
				}
				return w.Close()
			}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			nn := newLeaving(t)
			nameNode := "hdfs://" + nn.Addr().String()
			synctest.Test(t, func(t *testing.T) {
				c, err := hdfs.New(nameNode, conf.New(nil), hdfs.Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				do, err := prepare(t.Context(), &hdfsStore{c: c, uri: nameNode + "/s", root: "/s"})
				if err != nil {
					t.Fatal(err)
				}
				nn.leave()
				began := time.Now()
				if err := do(); err == nil {
					t.Fatal("it was done without a NameNode")
				}
				if took := time.Since(began); took < write.CommitLimit-10*time.Second || took > write.CommitLimit+30*time.Second {
					t.Errorf("it fails after %s, and has %s", took, write.CommitLimit)
				}
			})
		})
	}
}

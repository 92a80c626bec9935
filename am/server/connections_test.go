package server_test

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"holdfast/am/server"
	"holdfast/internal/jobtls"
	"holdfast/proto"
)

// lasting is a service whose calls of Connect last until their connection has ended.
type lasting struct {
	services
	called, over chan struct{}
}

func (l lasting) Connect(s proto.AgentService_ConnectServer) error {
	close(l.called)
	<-s.Context().Done()
	close(l.over)
	return s.Context().Err()
}

// wire is a listener of one connection, whose other end may vanish: nothing that is sent
// arrives any longer then, and neither end is told.
type wire struct {
	conns          chan net.Conn
	client, server net.Conn // where what the others write is read
	vanished       chan struct{}
	closed         chan struct{} // once the server has closed its end
}

func newWire() (w *wire, client net.Conn) {
	w = &wire{conns: make(chan net.Conn, 1), vanished: make(chan struct{}), closed: make(chan struct{})}
	client, w.client = net.Pipe()
	ours, theirs := net.Pipe()
	w.server = ours
	w.conns <- theirs
	return w, client
}

func (w *wire) Accept() (net.Conn, error) {
	if conn, ok := <-w.conns; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}

func (w *wire) Close() error   { close(w.conns); return nil }
func (w *wire) Addr() net.Addr { return w.server.LocalAddr() }

// pass hands on what comes from one end until that is closed, or the ends have vanished.
func (w *wire) pass(from, to net.Conn) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		select {
		case <-w.vanished:
		default:
			_, _ = to.Write(buffer[:n])
		}
	}
}

// over plays a client against a server of a job, in time that does not pass by itself.
func over(t *testing.T, play func(ctx context.Context, conn *grpc.ClientConn, w *wire, l lasting)) {
	synctest.Test(t, func(t *testing.T) {
		keys, err := jobtls.New("job")
		if err != nil {
			t.Fatal(err)
		}
		log := logrus.New()
		log.SetOutput(io.Discard)
		l := lasting{called: make(chan struct{}), over: make(chan struct{})}
		s, err := server.New(keys.Master, logrus.NewEntry(log), l, l)
		if err != nil {
			t.Fatal(err)
		}
		w, client := newWire()
		var all sync.WaitGroup
		all.Go(func() { _ = s.Serve(w) }) // ends by Stop
		all.Go(func() { w.pass(w.client, w.server) })
		all.Go(func() {
			w.pass(w.server, w.client)
			close(w.closed)
		})
		own, err := keys.Master.Admit(keys.Agent, "c1")
		if err != nil {
			t.Fatal(err)
		}
		config, err := keys.Agent.Dialer()
		if err != nil {
			t.Fatal(err)
		}
		conn, err := grpc.NewClient("passthrough:///job", grpc.WithTransportCredentials(credentials.NewTLS(config)),
			grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return client, nil }))
		if err != nil {
			t.Fatal(err)
		}
		play(metadata.AppendToOutgoingContext(t.Context(), proto.HeaderContainer, "c1", proto.HeaderPass, string(own.Pass)), conn, w, l)
		conn.Close()
		s.Stop()
		client.Close()
		w.client.Close()
		w.server.Close()
		all.Wait()
	})
}

// ended reports whether a channel is closed once time has passed.
func ended(c chan struct{}, after time.Duration) bool {
	time.Sleep(after) // of the bubble
	synctest.Wait()
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// An agent that has vanished, so that nothing ends its connection, is noticed, and its call
// is over.
func TestWhoHasVanishedIsNoticed(t *testing.T) {
	over(t, func(ctx context.Context, conn *grpc.ClientConn, w *wire, l lasting) {
		_, err := proto.NewAgentServiceClient(conn).Connect(ctx)
		if err != nil {
			t.Fatal(err)
		}
		<-l.called
		if ended(l.over, time.Hour) {
			t.Fatal("an agent that answers is let go")
		}
		close(w.vanished)
		if !ended(l.over, 5*time.Minute) || !ended(w.closed, 0) {
			t.Error("five minutes after an agent has vanished its call goes on")
		}
	})
}

// A client that keeps its connection, and calls nothing, is let go.
func TestWhoCallsNothingIsLetGo(t *testing.T) {
	over(t, func(_ context.Context, conn *grpc.ClientConn, w *wire, _ lasting) {
		conn.Connect()
		if ended(w.closed, 5*time.Minute) {
			t.Error("a client is let go after five minutes without a call")
		}
		if !ended(w.closed, 10*time.Minute) {
			t.Error("a client without a call for a quarter of an hour keeps its connection")
		}
	})
}

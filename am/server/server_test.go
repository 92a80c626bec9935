package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"holdfast/am/server"
	"holdfast/internal/jobtls"
	"holdfast/proto"
)

// services are those of a job. They answer each call that reaches them.
type services struct {
	proto.UnimplementedAgentServiceServer
	proto.UnimplementedJobServiceServer
}

// Connect sends back the container that the caller speaks for.
func (services) Connect(s proto.AgentService_ConnectServer) error {
	return s.Send(&proto.ToAgent{Message: &proto.ToAgent_Release{Release: &proto.Release{Why: server.Container(s.Context())}}})
}

func (services) Status(context.Context, *proto.StatusRequest) (*proto.JobStatus, error) {
	return &proto.JobStatus{}, nil
}

func (services) Kill(context.Context, *proto.KillRequest) (*proto.KillResponse, error) {
	return &proto.KillResponse{}, nil
}

// running is a server on a loopback address.
type running struct {
	t       *testing.T
	keys    jobtls.Set
	address string
	logged  logtest.Hook
}

func serve(t *testing.T) *running {
	t.Helper()
	keys, err := jobtls.New("job")
	if err != nil {
		t.Fatal(err)
	}
	listener, err := server.Listen("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	r := &running{t: t, keys: keys, address: listener.Address()}
	log := logrus.New()
	log.SetOutput(io.Discard)
	log.AddHook(&r.logged)
	s, err := server.New(keys.Master, logrus.NewEntry(log), services{}, services{})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Serve(listener) // ends by Stop
	}()
	t.Cleanup(func() {
		s.Stop()
		<-ended
	})
	return r
}

func (r *running) dial(k jobtls.Keys) *grpc.ClientConn {
	r.t.Helper()
	config, err := k.Dialer()
	if err != nil {
		r.t.Fatal(err)
	}
	conn, err := grpc.NewClient(r.address, grpc.WithTransportCredentials(credentials.NewTLS(config)))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { conn.Close() })
	return conn
}

// connect calls AgentService.Connect, and returns the container that the server took the
// caller to speak for.
func (r *running) connect(k jobtls.Keys, header ...string) (container string, err error) {
	r.t.Helper()
	ctx := metadata.AppendToOutgoingContext(r.t.Context(), header...)
	stream, err := proto.NewAgentServiceClient(r.dial(k)).Connect(ctx)
	if err != nil {
		return "", err
	}
	m, err := stream.Recv()
	return m.GetRelease().GetWhy(), err
}

// Each party may call its own service only, and those who change the job, or are refused,
// are in the audit log.
func TestPartiesMayCallOnlyTheirOwn(t *testing.T) {
	r := serve(t)
	stranger, err := jobtls.New("other")
	if err != nil {
		t.Fatal(err)
	}
	kill := func(k jobtls.Keys) error {
		_, err := proto.NewJobServiceClient(r.dial(k)).Kill(t.Context(), &proto.KillRequest{Why: "enough\nof it", User: "alice"})
		return err
	}
	if err := kill(r.keys.Agent); status.Code(err) != codes.PermissionDenied {
		t.Errorf("an agent asks to kill: %v", err)
	}
	if err := kill(stranger.Client); status.Code(err) != codes.Unavailable {
		t.Errorf("a client of another job asks to kill: %v", err)
	}
	if _, err := r.connect(r.keys.Client); status.Code(err) != codes.PermissionDenied {
		t.Errorf("a client connects as an agent: %v", err)
	}
	if err := kill(r.keys.Client); err != nil {
		t.Errorf("a client asks to kill: %v", err)
	}
	if _, err := proto.NewJobServiceClient(r.dial(r.keys.Client)).Status(t.Context(), &proto.StatusRequest{}); err != nil {
		t.Errorf("a client asks for the status: %v", err)
	}
	restart := func(k jobtls.Keys) error {
		_, err := proto.NewJobServiceClient(r.dial(k)).RestartTask(t.Context(), &proto.RestartTaskRequest{Task: "worker-0", User: "alice"})
		return err
	}
	if err := restart(r.keys.Agent); status.Code(err) != codes.PermissionDenied {
		t.Errorf("an agent asks to restart a task: %v", err)
	}
	if err := restart(r.keys.Client); status.Code(err) != codes.Unimplemented {
		t.Errorf("a client asks to restart a task: %v", err)
	}
	exec := func(k jobtls.Keys) error {
		stream, err := proto.NewJobServiceClient(r.dial(k)).Exec(t.Context(), &proto.ExecRequest{Task: "worker-0", Command: []string{"rm", "-r", strings.Repeat("x", 300)}, User: "alice"})
		if err == nil {
			_, err = stream.Recv()
		}
		return err
	}
	if err := exec(r.keys.Agent); status.Code(err) != codes.PermissionDenied {
		t.Errorf("an agent asks to run a command: %v", err)
	}
	if err := exec(r.keys.Client); status.Code(err) != codes.Unimplemented {
		t.Errorf("a client asks to run a command: %v", err)
	}
	scale := func(k jobtls.Keys) error {
		_, err := proto.NewJobServiceClient(r.dial(k)).Scale(t.Context(), &proto.ScaleRequest{Role: "worker", Count: 3, User: "alice"})
		return err
	}
	if err := scale(r.keys.Agent); status.Code(err) != codes.PermissionDenied {
		t.Errorf("an agent asks for other tasks: %v", err)
	}
	if err := scale(r.keys.Client); status.Code(err) != codes.Unimplemented {
		t.Errorf("a client asks for other tasks: %v", err)
	}
	var audit []string
	for _, e := range r.logged.AllEntries() {
		if who, _ := e.Data["who"].(string); strings.Contains(who, " at 127.0.0.1:") {
			line := fmt.Sprint(e.Data["audit"], " ", strings.Fields(who)[0], " ", e.Data["allowed"])
			for _, key := range []string{"user", "why", "task", "command", "role", "count"} {
				if value := e.Data[key]; value != nil {
					line += fmt.Sprint(" ", value)
				}
			}
			audit = append(audit, line)
		}
	}
	// The call of the stranger was never made: TLS has refused the connection.
	want := []string{"Kill agent false alice enough\nof it", "Connect client false", "Kill client true alice enough\nof it",
		"RestartTask agent false alice worker-0", "RestartTask client true alice worker-0",
		"Exec agent false", "Exec client true alice worker-0 rm -r " + strings.Repeat("x", 194),
		"Scale agent false alice worker 3", "Scale client true alice worker 3"}
	if !slices.Equal(audit, want) {
		t.Errorf("audited are %q, want %q", audit, want)
	}
}

// Every method of a job's services is one of those that clients read by, or it is audited;
// an agent may call none of those that are for clients.
func TestEveryMethodIsAuditedOrReads(t *testing.T) {
	reads := []string{"Status", "Watch", "Samples"}
	r := serve(t)
	call := func(k jobtls.Keys, method string) error {
		stream, err := r.dial(k).NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true}, "/"+proto.JobService_ServiceDesc.ServiceName+"/"+method)
		if err != nil {
			return err
		}
		if err := stream.SendMsg(&proto.StatusRequest{}); err != nil && err != io.EOF {
			return err
		}
		if err := stream.CloseSend(); err != nil {
			return err
		}
		return stream.RecvMsg(&proto.StatusRequest{})
	}
	var names []string
	for _, m := range proto.JobService_ServiceDesc.Methods {
		names = append(names, m.MethodName)
	}
	for _, m := range proto.JobService_ServiceDesc.Streams {
		names = append(names, m.StreamName)
	}
	for _, name := range names {
		if err := call(r.keys.Agent, name); status.Code(err) != codes.PermissionDenied {
			t.Errorf("an agent calls %s: %v", name, err)
		}
		r.logged.Reset()
		if err := call(r.keys.Client, name); status.Code(err) == codes.PermissionDenied {
			t.Errorf("a client calls %s: %v", name, err)
		}
		e := r.logged.LastEntry()
		if audited := e != nil && e.Data["audit"] == name && e.Data["allowed"] == true; audited == slices.Contains(reads, name) {
			t.Errorf("a call of %s is audited: %v", name, audited)
		}
	}
}

// An agent may speak only for the container that its pass is for.
func TestAnAgentSpeaksForItsOwnContainerOnly(t *testing.T) {
	r := serve(t)
	pass := func(container string) string {
		own, err := r.keys.Master.Admit(r.keys.Agent, container)
		if err != nil {
			t.Fatal(err)
		}
		return string(own.Pass)
	}
	if c, err := r.connect(r.keys.Agent, proto.HeaderContainer, "c1", proto.HeaderPass, pass("c1")); err != nil || c != "c1" {
		t.Errorf("an agent speaks for %q (%v)", c, err)
	}
	for name, header := range map[string][]string{
		"the pass of another":  {proto.HeaderContainer, "c1", proto.HeaderPass, pass("c2")},
		"two passes":           {proto.HeaderContainer, "c1", proto.HeaderPass, pass("c2"), proto.HeaderPass, pass("c1")},
		"no pass":              {proto.HeaderContainer, "c1"},
		"two containers":       {proto.HeaderContainer, "c1", proto.HeaderContainer, "c2", proto.HeaderPass, pass("c1")},
		"a pass of no account": {proto.HeaderContainer, "c1", proto.HeaderPass, "let me in"},
		"nothing":              nil,
	} {
		if _, err := r.connect(r.keys.Agent, header...); status.Code(err) != codes.PermissionDenied {
			t.Errorf("with %s: %v", name, err)
		}
	}
}

// A connection on which nothing is sent is closed, as is one that never completes the TLS
// handshake: neither needs a key.
func TestAConnectionThatSendsNothingIsClosed(t *testing.T) {
	t.Parallel() // it waits for a timeout
	r := serve(t)
	var conns []net.Conn
	for _, sent := range []string{"", "\x16\x03\x01\x02\x00"} { // a handshake record of TLS of 512 bytes
		conn, err := net.Dial("tcp", r.address)
		if err == nil {
			_, err = conn.Write([]byte(sent))
		}
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conns = append(conns, conn)
	}
	for i, conn := range conns {
		err := conn.SetReadDeadline(time.Now().Add(time.Minute))
		if err == nil {
			_, err = io.Copy(io.Discard, conn)
		}
		if err != nil && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("connection %d: %v", i, err)
		}
	}
}

package agents

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"holdfast/proto"
)

// agentStream is an agent's stream of which a test is the agent.
type agentStream struct {
	grpc.ServerStream
	ctx  context.Context
	in   chan *proto.FromAgent
	sent chan *proto.ToAgent
}

func (a *agentStream) Context() context.Context    { return a.ctx }
func (a *agentStream) Send(m *proto.ToAgent) error { return a.SendMsg(m) }

func (a *agentStream) SendMsg(m any) error {
	a.sent <- m.(*proto.ToAgent)
	return nil
}

func (a *agentStream) Recv() (*proto.FromAgent, error) {
	m, ok := <-a.in
	if !ok {
		return nil, io.EOF
	}
	return m, nil
}

// execution is a call of Exec whose client takes output only as a test says.
type execution struct {
	*agentStream
	t     *testing.T
	id    int64
	takes chan *proto.ExecOutput
	ended chan error
}

// serve is a server, and where it passes on what it receives.
func serve(t *testing.T) (*Server, chan Received) {
	log := logrus.New()
	log.SetOutput(io.Discard)
	received := make(chan Received, 64)
	return NewServer(Config{Timeout: time.Hour, Received: received, Done: t.Context().Done(), Heartbeat: func(string, *proto.Heartbeat) {}, Log: logrus.NewEntry(log)}), received
}

// connect is a stream of the agent in c1, which has said Hello.
func connect(t *testing.T, s *Server, received chan Received) *agentStream {
	a := &agentStream{
		ctx: metadata.NewIncomingContext(t.Context(), metadata.Pairs(proto.HeaderContainer, "c1")),
		in:  make(chan *proto.FromAgent), sent: make(chan *proto.ToAgent, 1000),
	}
	go s.Connect(a)
	a.in <- &proto.FromAgent{Message: &proto.FromAgent_Hello{Hello: &proto.Hello{Container: "c1"}}}
	s.Introduced(<-received)
	return a
}

// TestTheLeaseOfWhoWasReleasedEnds: an agent that was told to end and does not is given up by then,
// and its task is started elsewhere. So its heartbeats are not answered, nor those of its next
// stream.
func TestTheLeaseOfWhoWasReleasedEnds(t *testing.T) {
	s, received := serve(t)
	message := NewMessages("job", &proto.JobSpec{}).Release("it does not answer")
	for _, released := range []bool{false, true} {
		a := connect(t, s, received)
		for range 2 {
			a.in <- &proto.FromAgent{Message: &proto.FromAgent_Heartbeat{Heartbeat: &proto.Heartbeat{Sequence: 1}}}
			a.in <- &proto.FromAgent{Message: &proto.FromAgent_Started{}} // once it is passed on, the other was taken in
			<-received
			s.Sender("c1")(message)
			if m := <-a.sent; (m.GetRelease() != nil) != released || !released && m.GetHeartbeatReply() == nil {
				t.Errorf("the agent is sent %v", m)
			}
			if !released {
				<-a.sent
			}
			released = true
		}
		close(a.in)
		<-received
	}
}

// TestWhatIsMeantForOneStream: what an agent was to be told before it was connected anew is not
// told on its next stream, on which it says what it has missed.
func TestWhatIsMeantForOneStream(t *testing.T) {
	s, received := serve(t)
	first := connect(t, s, received)
	tell := s.Sender("c1") // and the message waits for the journal
	close(first.in)
	<-received
	a := connect(t, s, received)
	defer close(a.in)
	tell(NewMessages("job", &proto.JobSpec{}).Release("of before"))
	s.Sender("c1")(&proto.ToAgent{Message: &proto.ToAgent_EndLingering{}})
	if m := <-a.sent; m.GetRelease() != nil {
		t.Errorf("the agent is told %v", m)
	}
}

func execute(t *testing.T) *execution {
	s, received := serve(t)
	a := connect(t, s, received)
	t.Cleanup(func() { close(a.in) })
	e := &execution{agentStream: a, t: t, takes: make(chan *proto.ExecOutput), ended: make(chan error, 1)}
	go func() {
		e.ended <- s.Exec(t.Context(), "c1", &proto.Exec{Command: []string{"yes"}}, func(o *proto.ExecOutput) error {
			e.takes <- o
			return nil
		})
	}()
	e.id = (<-a.sent).GetExec().Id
	return e
}

func (e *execution) prints(n int) {
	for range n {
		e.in <- &proto.FromAgent{Message: &proto.FromAgent_ExecOutput{ExecOutput: &proto.ExecOutput{Id: e.id, Output: []byte("y\n")}}}
	}
}

// beats sends a heartbeat, and returns how many messages were told to be taken until it is
// answered.
func (e *execution) beats() (taken int) {
	e.t.Helper()
	e.in <- &proto.FromAgent{Message: &proto.FromAgent_Heartbeat{Heartbeat: &proto.Heartbeat{Sequence: 1}}}
	for {
		switch m := (<-e.sent).Message.(type) {
		case *proto.ToAgent_HeartbeatReply:
			return taken
		case *proto.ToAgent_ExecTaken:
			if m.ExecTaken.Id != e.id {
				e.t.Errorf("taken is output of %d, want %d", m.ExecTaken.Id, e.id)
			}
			taken++
		}
	}
}

// TestASlowClientOfExec: what its client has not taken, the agent is not told to be taken, and
// heartbeats are answered meanwhile.
func TestASlowClientOfExec(t *testing.T) {
	e := execute(t)
	e.prints(proto.ExecWindow)
	if n := e.beats(); n != 0 {
		t.Errorf("%d messages are taken, the client has taken none", n)
	}
	for range 3 {
		if o := <-e.takes; string(o.Output) != "y\n" {
			t.Errorf("the client is sent %v", o)
		}
	}
	for range 3 {
		if m := <-e.sent; m.GetExecTaken() == nil {
			t.Errorf("the agent is sent %v", m)
		}
	}
	e.prints(3)
	if n := e.beats(); n != 0 {
		t.Errorf("%d more are taken", n)
	}
	go func() {
		e.in <- &proto.FromAgent{Message: &proto.FromAgent_ExecOutput{ExecOutput: &proto.ExecOutput{Id: e.id, Done: true, Code: 3}}}
	}()
	for n := 0; ; n++ {
		if o := <-e.takes; o.Done {
			if o.Code != 3 || n != proto.ExecWindow {
				t.Errorf("after %d messages: %v", n, o)
			}
			break
		}
	}
	if err := <-e.ended; err != nil {
		t.Error(err)
	}
}

// TestAnAgentThatDoesNotWaitForTheClient: its output does not fill the memory.
func TestAnAgentThatDoesNotWaitForTheClient(t *testing.T) {
	e := execute(t)
	e.prints(100 * proto.ExecWindow)
	if n := e.beats(); n != 0 {
		t.Errorf("%d messages are taken, the client has taken none", n)
	}
	for range proto.ExecWindow {
		if o := <-e.takes; o.Done {
			t.Errorf("the client is sent %v", o)
		}
	}
	select {
	case o := <-e.takes:
		t.Errorf("more than that was kept: %v", o)
	case err := <-e.ended:
		if err == nil || !strings.Contains(err.Error(), "faster than it is taken") {
			t.Errorf("it ends with %v", err)
		}
	}
}

// TestAnAgentThatIsLostDuringExec: whether the command has run is not known, which is an error of the
// call, and no answer that nothing was run.
func TestAnAgentThatIsLostDuringExec(t *testing.T) {
	s, received := serve(t)
	a := connect(t, s, received)
	exec := func() chan error {
		ended := make(chan error, 1)
		go func() {
			ended <- s.Exec(t.Context(), "c1", &proto.Exec{Command: []string{"true"}}, func(o *proto.ExecOutput) error {
				t.Errorf("the client is sent %v", o)
				return nil
			})
		}()
		return ended
	}
	ended := exec()
	<-a.sent
	close(a.in)
	<-received
	if err := <-ended; err == nil || errors.Is(err, ErrNotAsked) {
		t.Errorf("it ends with %v", err)
	}
	if err := <-exec(); !errors.Is(err, ErrNotAsked) {
		t.Errorf("without an agent it ends with %v", err)
	}
}

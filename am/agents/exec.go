package agents

import (
	"context"
	"errors"

	"holdfast/internal/mailbox"
	"holdfast/proto"
)

// exec is a command that an agent runs for a client.
type exec struct {
	container string
	output    *mailbox.Mailbox[execAnswer]
	waiting   int // messages with output that are sent to the client next: at most proto.ExecWindow; guarded by Server.mu
}

// execAnswer is what an agent answers; or err, that it answers no more.
type execAnswer struct {
	*proto.ExecOutput
	err error
}

// ErrNotAsked means that no agent was asked to run a command.
var ErrNotAsked = errors.New("its agent is not connected")

// Exec has the agent in a container run a command, or print stacks, as request says, and
// calls send with what the agent answers, until that is all, ctx ends or send fails. Then
// the command is ended. After an error but ErrNotAsked it may have run. The agent sends no more than a window ahead of what send has taken. It
// may be called concurrently.
func (s *Server) Exec(ctx context.Context, container string, request *proto.Exec, send func(*proto.ExecOutput) error) error {
	e := &exec{container: container, output: mailbox.New[execAnswer]()}
	s.mu.Lock()
	st := s.streams[container]
	if st == nil {
		s.mu.Unlock()
		return ErrNotAsked
	}
	s.lastID++
	id := s.lastID
	s.execs[id] = e
	request.Id = id
	st.enqueue(single{&proto.ToAgent{Message: &proto.ToAgent_Exec{Exec: request}}})
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.execs, id)
		s.mu.Unlock()
	}()
	ended := make(chan struct{})
	defer close(ended)
	output := e.output.Chan(ended)
	for {
		select {
		case o := <-output:
			if o.err != nil {
				return o.err
			}
			if err := send(o.ExecOutput); err != nil {
				s.cancelExec(container, id)
				return err
			}
			if o.Done {
				return nil
			}
			s.taken(e, container, id)
		case <-ctx.Done():
			s.cancelExec(container, id)
			return context.Cause(ctx)
		case <-s.cfg.Done:
			return errors.New("the job has ended")
		}
	}
}

func (s *Server) cancelExec(container string, id int64) {
	s.send(container, &proto.ToAgent{Message: &proto.ToAgent_Exec{Exec: &proto.Exec{Id: id, Cancel: true}}})
}

// taken takes in that a client has taken a message with output, and has the agent send another.
func (s *Server) taken(e *exec, container string, id int64) {
	s.mu.Lock()
	e.waiting--
	s.mu.Unlock()
	s.send(container, &proto.ToAgent{Message: &proto.ToAgent_ExecTaken{ExecTaken: &proto.ExecTaken{Id: id}}})
}

// deliver passes an agent's answer on to the call of Exec that waits for it. An agent that
// sends more than it may is not listened to any longer.
func (s *Server) deliver(container string, o *proto.ExecOutput) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.execs[o.Id]
	if e == nil || e.container != container {
		return
	}
	if !o.Done {
		if e.waiting++; e.waiting > proto.ExecWindow {
			delete(s.execs, o.Id)
			e.output.Put(execAnswer{err: errors.New("the task's agent sends output faster than it is taken")})
			return
		}
	}
	e.output.Put(execAnswer{ExecOutput: o})
}

// abandonExecs ends the calls of Exec that wait for an agent whose stream has ended.
func (s *Server) abandonExecs(container string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.execs {
		if e.container == container {
			e.output.Put(execAnswer{err: errors.New("the connection to the task's agent broke")})
		}
	}
}

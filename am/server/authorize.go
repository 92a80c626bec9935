package server

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/sirupsen/logrus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"holdfast/internal/jobtls"
	"holdfast/proto"
)

// authorizer decides who may call what. It logs each call that changes the job and each
// call that it refuses, with the keys audit (the method), who (the party named by the
// caller's certificate, and its address), allowed, and what is asked for: user (who the
// caller says that it is; a job's keys are its user's), for Kill why, for RestartTask the
// task, for Scale the role and the count, for Exec the task and the command, or that it is
// stacks that are asked for.
type authorizer struct {
	keys jobtls.Keys
	log  *logrus.Entry
}

// methods lists who may call each method, and whether the call is audited because it
// changes the job. What agents report changes the job all the time; of their calls only
// the refused ones are logged.
var methods = map[string]struct {
	party   jobtls.Party
	changes bool
}{
	proto.AgentService_Connect_FullMethodName:   {jobtls.Agent, false},
	proto.JobService_Status_FullMethodName:      {jobtls.Client, false},
	proto.JobService_Watch_FullMethodName:       {jobtls.Client, false},
	proto.JobService_Samples_FullMethodName:     {jobtls.Client, false},
	proto.JobService_Kill_FullMethodName:        {jobtls.Client, true},
	proto.JobService_RestartTask_FullMethodName: {jobtls.Client, true},
	proto.JobService_Scale_FullMethodName:       {jobtls.Client, true},
	proto.JobService_Exec_FullMethodName:        {jobtls.Client, true},
}

// check returns nil if the call is allowed, and otherwise the error to refuse it with.
func (a authorizer) check(ctx context.Context, method string, request any) error {
	who, err := a.decide(ctx, method)
	if err != nil || methods[method].changes {
		a.audit(method, who, request, err)
	}
	return err
}

// checkStream does that for a call whose request is its first message. It returns the
// stream that the call is to use.
func (a authorizer) checkStream(stream grpc.ServerStream, method string) (grpc.ServerStream, error) {
	who, err := a.decide(stream.Context(), method)
	switch {
	case err != nil:
		a.audit(method, who, nil, err)
		return nil, err
	case methods[method].changes:
		return &auditedStream{stream, func(request any) { a.audit(method, who, request, nil) }}, nil
	}
	return stream, nil
}

func (a authorizer) audit(method, who string, request any, err error) {
	log := a.log.WithFields(logrus.Fields{"audit": path.Base(method), "who": who, "allowed": err == nil})
	if r, ok := request.(interface{ GetUser() string }); ok {
		log = log.WithField("user", cmp.Or(r.GetUser(), "unknown"))
	}
	switch r := request.(type) {
	case *proto.KillRequest:
		log = log.WithField("why", r.Why)
	case *proto.RestartTaskRequest:
		log = log.WithField("task", r.Task)
	case *proto.ScaleRequest:
		log = log.WithFields(logrus.Fields{"role": r.Role, "count": r.Count})
	case *proto.ExecRequest:
		log = log.WithFields(logrus.Fields{"task": r.Task, "command": fmt.Sprintf("%.200s", strings.Join(r.Command, " ")), "stacks": r.Stacks})
	}
	if err != nil {
		log.WithError(err).Warn("a call was refused")
	} else {
		log.Info("a call changes the job")
	}
}

func (a authorizer) decide(ctx context.Context, method string) (who string, err error) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return "", status.Error(codes.Unauthenticated, "no peer")
	}
	who = p.Addr.String()
	caller, ok := p.AuthInfo.(peerInfo)
	if !ok {
		return who, status.Error(codes.Unauthenticated, "no TLS")
	}
	who = fmt.Sprintf("%s at %s", caller.party, who)
	if methods[method].party != caller.party {
		return who, status.Error(codes.PermissionDenied, fmt.Sprintf("a job's %s may not call %s", caller.party, method))
	}
	if caller.party == jobtls.Agent && !admitted(ctx, a.keys) {
		return who, status.Error(codes.PermissionDenied, fmt.Sprintf("this agent may not speak for the container %q", Container(ctx)))
	}
	return who, nil
}

// auditedStream has a call audited once its request has come, without which nothing changes.
type auditedStream struct {
	grpc.ServerStream
	audit func(request any)
}

// RecvMsg implements grpc.ServerStream.
func (s *auditedStream) RecvMsg(m any) error {
	err := s.ServerStream.RecvMsg(m)
	if err == nil && s.audit != nil {
		s.audit(m)
		s.audit = nil
	}
	return err
}

// Container returns the container whose agent makes a call, from the call's metadata; ""
// if there is none. The server admits only agents that hold the pass for their container.
func Container(ctx context.Context) string {
	list := metadata.ValueFromIncomingContext(ctx, proto.HeaderContainer)
	if len(list) != 1 {
		return ""
	}
	return list[0]
}

// admitted reports whether an agent holds the pass for the container that it names.
func admitted(ctx context.Context, keys jobtls.Keys) bool {
	pass := metadata.ValueFromIncomingContext(ctx, proto.HeaderPass)
	return len(pass) == 1 && keys.Admits(Container(ctx), []byte(pass[0]))
}
